"""Every small change to a reference answer is noticed by a check, or listed with the reason why it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answer_bank import checks_of, compiled, concerned, defines, functions_of, given_and_answers
from tests.examining import Examiner
from tests.grader.mutants import Mutant, mutants
from xinfer_lab.grading.check import VISIBLE
from xinfer_lab.grading.rooms import LABS

ASKED = [(lab, function) for lab in LABS for function in sorted(functions_of(lab))]

_NAME = "a name or a label, for people"
_GIVEN = "given, and nothing is in flight then: everything uploaded has been read; the device gives back what is left"
_SPARE = "with a slot to spare, the step before was the last to read the one that is filled"
_WORDS = "the words of an error"
_GROWS = "a fence value need only grow"
_SHORT = "n is never negative, so a file of fewer than 8 bytes breaks rule 3 too, and one of 8 has no JSON behind them"
_FALLS = "a function that comes to its end returns None"
_UNREAD = "a placeholder: nobody looks at it before retire has replaced it"
TAIL = (
    "uploads for steps after the last one, at most N of them: every streamer may leave that many for a run that goes on"
)
OWN_CALLS = "the direct queue's own calls return `work` to COMMON in the tracker, so this claim only says what it knows"

EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("lab1", "read_header", "line 14: if size < 8:  ->  nothing"): _SHORT,
    (
        "lab1",
        "read_header",
        "line 15: raise ValueError(f'a file of {size} bytes is too short for the length')  ->  nothing",
    ): _SHORT,
    ("lab1", "read_header", "line 14: size < 8  ->  size <= 8"): _SHORT,
    ("lab1", "read_header", "line 14: 8  ->  9"): _SHORT,
    ("lab1", "read_header", "line 14: 8  ->  7"): _SHORT,
    ("lab1", "read_header", "line 15: 'a file of '  ->  'a file of ?'"): _WORDS,
    (
        "lab1",
        "read_header",
        "line 15: ' bytes is too short for the length'  ->  ' bytes is too short for the length?'",
    ): _WORDS,
    ("lab1", "read_header", "line 18: 'a header of '  ->  'a header of ?'"): _WORDS,
    (
        "lab1",
        "read_header",
        "line 18: ' bytes is too long; 100,000,000 is the limit'  ->  ' bytes is too long; 100,000,000 is the limit?'",
    ): _WORDS,
    ("lab1", "read_header", "line 20: 'a header of '  ->  'a header of ?'"): _WORDS,
    ("lab1", "read_header", "line 20: ' bytes does not fit a file of '  ->  ' bytes does not fit a file of ?'"): _WORDS,
    (
        "lab1",
        "read_header",
        "line 23: 'a header is a JSON object, not a '  ->  'a header is a JSON object, not a ?'",
    ): _WORDS,
    ("lab1", "tensor_ranges", "line 16: ' has the unknown dtype '  ->  ' has the unknown dtype ?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 19: ' has the range ['  ->  ' has the range [?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 19: ', '  ->  ', ?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 19: ']'  ->  ']?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 21: ' ends behind the file of '  ->  ' ends behind the file of ?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 21: ' bytes'  ->  ' bytes?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 23: ' does not fit its range ['  ->  ' does not fit its range [?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 23: ', '  ->  ', ?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 23: ']'  ->  ']?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 28: 'two tensors share byte '  ->  'two tensors share byte ?'"): _WORDS,
    ("lab1", "tensor_ranges", "line 28: 0  ->  1"): _WORDS,
    ("lab1", "tensor_ranges", "line 28: 0  ->  -1"): _WORDS,
    ("lab2", "CopyEngine", "line 8: 'copied'  ->  'copied?'"): _NAME,
    ("lab2", "CopyEngine", "line 17: True  ->  False"): "zip(strict=): groups and buffers are equally many",
    ("lab2", "CopyEngine", "line 21: 'upload layer '  ->  'upload layer ?'"): _NAME,
    ("lab2", "CopyEngine", "line 30: self.copied.wait(self.copied.last_submitted)  ->  nothing"): _GIVEN,
    ("lab2", "CopyEngine", "line 31: self.ring.close()  ->  nothing"): _GIVEN,
    ("lab2", "StagingRing", "line 6: 'staging'  ->  'staging?'"): _NAME,
    ("lab2", "StagingRing", "line 19: 'a ring of '  ->  'a ring of ?'"): _WORDS,
    ("lab2", "StagingRing", "line 19: ' bytes cannot hand out '  ->  ' bytes cannot hand out ?'"): _WORDS,
    (
        "lab2",
        "StagingRing",
        "line 25: 'the ring is full of ranges that were never retired'  ->  "
        "'the ring is full of ranges that were never retired?'",
    ): _WORDS,
    ("lab2", "StagingRing", "line 28: 'value'  ->  'value?'"): _UNREAD,
    ("lab2", "StagingRing", "line 28: 0  ->  1"): _UNREAD,
    ("lab2", "StagingRing", "line 28: 0  ->  -1"): _UNREAD,
    ("lab2", "StagingRing", "line 44: self.heap.free()  ->  nothing"): _GIVEN,
    ("lab4", "ordering", "line 28: step + ring.pool < ring.end  ->  step + ring.pool <= ring.end"): TAIL,
    ("lab4", "ordering", "line 28: step + ring.pool  ->  step - ring.pool"): TAIL,
    ("lab4", "lifetime", "line 30: step + ring.pool < ring.end  ->  step + ring.pool <= ring.end"): TAIL,
    ("lab4", "lifetime", "line 30: step + ring.pool  ->  step - ring.pool"): TAIL,
    ("lab4", "wrap_around", "line 32: 1  ->  2"): _SPARE,
    ("lab4", "wrap_around", "line 34: ahead < ring.end  ->  ahead <= ring.end"): TAIL,
    ("lab4", "wrap_around", "line 35: 1  ->  0"): _SPARE,
    ("lab4", "mid_call", "line 36: step + ring.pool < ring.end  ->  step + ring.pool <= ring.end"): TAIL,
    ("lab4", "mid_call", "line 36: step + ring.pool  ->  step - ring.pool"): TAIL,
    ("lab4", "mid_call", "line 29: for buffer in work.buffers:  ->  nothing"): OWN_CALLS,
    ("lab4", "mid_call", "line 30: buffer.assume_common()  ->  nothing"): OWN_CALLS,
    ("lab4", "mid_call", "line 31: 'layer '  ->  'layer ?'"): "a label is for people",
    ("lab4", "mid_call", "line 32: True  ->  False"): "both slots have as many buffers, so zip's strict never fires",
    ("lab5", "PageTable", "line 10: return None  ->  nothing"): _FALLS,
    ("lab5", "PageTable", "line 21: 'page '  ->  'page ?'"): _WORDS,
    ("lab5", "PageTable", "line 21: ', in frame '  ->  ', in frame ?'"): _WORDS,
    ("lab5", "PageTable", "line 21: ', cannot be bound to frame '  ->  ', cannot be bound to frame ?'"): _WORDS,
    ("lab5", "PageTable", "line 30: 'page '  ->  'page ?'"): _WORDS,
    ("lab5", "PageTable", "line 30: ' is not on its way: it is '  ->  ' is not on its way: it is ?'"): _WORDS,
    ("lab5", "PageTable", "line 38: 'page '  ->  'page ?'"): _WORDS,
    ("lab5", "PageTable", "line 38: ' cannot be used: it is '  ->  ' cannot be used: it is ?'"): _WORDS,
    ("lab5", "PageTable", "line 46: 'page '  ->  'page ?'"): _WORDS,
    ("lab5", "PageTable", "line 46: ' is released once too often'  ->  ' is released once too often?'"): _WORDS,
    ("lab5", "PageTable", "line 58: 'page '  ->  'page ?'"): _WORDS,
    ("lab5", "PageTable", "line 58: ' cannot leave: '  ->  ' cannot leave: ?'"): _WORDS,
    ("lab5", "Clock", "line 25: self.marked.discard(page)  ->  nothing"): "a page that comes again is marked anyway",
    ("lab5", "Clock", "line 43: return None  ->  nothing"): _FALLS,
    ("lab5", "prefetch", "line 17: 1  ->  2"): _GROWS,
    ("lab5", "prefetch", "line 20: 'bring page '  ->  'bring page ?'"): _NAME,
    ("lab5", "acquire", "line 12: 'page '  ->  'page ?'"): _WORDS,
    (
        "lab5",
        "acquire",
        "line 12: ' needs a frame, and every one holds a page that is acquired'  ->  "
        "' needs a frame, and every one holds a page that is acquired?'",
    ): _WORDS,
    ("lab5", "release", "line 9: 1  ->  2"): _GROWS,
    ("lab5", "evict", "line 15: 1  ->  2"): _GROWS,
    ("lab5", "evict", "line 17: 'save page '  ->  'save page ?'"): _NAME,
    (
        "lab5",
        "Clock",
        "line 35: 2  ->  3",
    ): "after two rounds nothing is marked that may go: a third finds nothing more",
    ("lab6", "fit", "line 13: 'no room for two slots of '  ->  'no room for two slots of ?'"): _WORDS,
    ("lab6", "fit", "line 13: ' bytes in '  ->  ' bytes in ?'"): _WORDS,
    ("lab6", "encode", "line 10: 256  ->  255"): "exponent 255 makes the counts longer by itself where it occurs",
    ("lab6", "encode", "line 10: 256  ->  257"): "the window from 242 on holds no more than the one before it",
    ("lab6", "encode", "line 11: 0  ->  -1"): "the only dimension is the first and the last",
    ("lab6", "plan", "line 18: time < best  ->  time <= best"): "tiers are equally fast only where nothing streams",
}
"""(lab, function, change) -> why no check can tell the mutant from the answer."""


def cells_of(lab: str, function: str) -> tuple[list[tuple[str, str]], int]:
    """The lab's given cells and answers, and the place of the one that defines ``function``."""
    cells = list(given_and_answers(lab))
    return cells, next(i for i, (_, text) in enumerate(cells) if defines(text, function))


def noticed(lab: str, function: str, cells: list[tuple[str, str]], place: int, mutant: Mutant) -> bool:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (name, text) in enumerate(cells):
        own = number == place
        exec(compile(mutant.source, f"<{name}>", "exec") if own else compiled(text, f"<{name}>"), names)
    # The strictest check of a race first: most mutants need no other.
    checks = sorted(concerned(lab, function), key=lambda check: not check.endswith(".beat_90"))
    # A mutant that never ends is noticed by that; the answers themselves take a fraction of it.
    examiner = Examiner(names, cpu_seconds=1.5)
    return any(not examiner.report(check, checks_of(lab)[check], VISIBLE).passed for check in checks)


@pytest.mark.parametrize(("lab", "function"), ASKED)
def test_every_mutant_of_an_answer_is_noticed_or_known_to_be_equivalent(lab: str, function: str) -> None:
    cells, place = cells_of(lab, function)
    made = mutants(cells[place][1], function)
    survivors = {str(mutant) for mutant in made if not noticed(lab, function, cells, place, mutant)}
    known = {change for key, name, change in EQUIVALENT if (key, name) == (lab, function)}
    assert made and survivors == known
