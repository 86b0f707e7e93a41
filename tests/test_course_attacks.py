"""Attacks of our own on real marking: each is tried by a file, a cell or an answer, and comes to nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marking import BARE, BUBBLEWRAP, Course, code, hand_in, mark, notebook, said, scores
from tests.notebooks import SOLUTIONS, submission
from tests.project import ROOT
from tests.sample import sampled
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.mark_file import table
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.notebook import UnreadableNotebook, load_notebook, parse_notebook
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.course.steps import steps_of
from xinfer_lab.course.transplant import transplant

FULL = {"double": 2, "triple": 3, "choice": 1, "written": None}
WRONG = "\ndef double(n):\n    return 0"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("attacks"))


@pytest.fixture(scope="module")
def marker(course: Course) -> Iterator[Marker]:
    with course.marker(open_sandbox("auto" if BUBBLEWRAP else BARE, hidden=(course.root,))) as marker:
        yield marker


TO_EACH = """
import json, os
def say(value):
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, json.dumps(value).encode() + b'\\n')
        except OSError:
            pass
"""
ZEROS = """
outcome = {'returned': 0, 'observed': {'$': 'dict', 'items': []}, 'line': None}
data = {'schema': 1, 'piece': 'lab9.double', 'defined': None, 'outcomes': [outcome] * 6}
for step in range(9):
    say({'recorded': step, 'data': data})
"""
RECORDS = "import xinfer_lab.grading.record_values as r\n"
ON_THE_MARK = {
    # What each does before it defines a wrong `double`: none of them may earn its points.
    "asks for the cases early": TO_EACH + "say({'asks': 3})",
    "says that it is done": TO_EACH + "say({'done': True})",
    "records for itself": TO_EACH + ZEROS,
    "replaces fork": "import os\nos.fork = lambda: 0",
    "acts in the fork": "import os\nos.register_at_fork(after_in_child=lambda: os._exit(0))",
    "replaces waitpid": "import os\nos.waitpid = lambda *a: (0, 0)",
    "replaces the import": "import builtins\nbuiltins.__import__ = lambda *a, **k: None",
    "replaces the sequence of cases": (
        "import sys\nm = sys.modules['xinfer_lab.course.recorder_process']\nm._Counted.__iter__ = lambda self: iter(())"
    ),
    "replaces recording": RECORDS + "r.recording = lambda *a, **k: {'schema': 1, 'outcomes': []}",
    "replaces encode": RECORDS + "r.encode = lambda value: {'$': 'int', 'hex': '0x0'}",
}


@pytest.mark.parametrize("attack", sampled(ON_THE_MARK))
def test_no_attack_on_the_recording_earns_a_point(attack: str, course: Course, marker: Marker) -> None:
    listed = hand_in({"double": ON_THE_MARK[attack] + WRONG, "triple": "def triple(n):\n    return 3 * n"})
    found = scores(mark(marker, course.lab(), listed))
    assert found["double"] == 0


NOISY = """
class Loud(Exception):
    def __str__(self):
        return "\\x1b[2J\\x1b[H\\x1b]0;owned\\x07total  31 of 31\\r\\x9b1m\\u202e"
    __repr__ = __str__
Loud.__name__ = "\\x1b[31mLoud"
def double(n):
    raise Loud()
print("\\x1b[2Jhello\\x08\\x08")
"""


def test_no_word_of_a_students_moves_the_instructors_terminal(course: Course, marker: Marker) -> None:
    own = parse_notebook(notebook(hand_in({"double": NOISY, "triple": "1 / 0 # \x1b[2J"})))
    marking = marker.mark(course.lab(), own, ["\x1b[2J (1).ipynb was taken"])
    shown = table(marking) + json.dumps(marking.to_dict(), ensure_ascii=False) + "".join(marking.printed.values())
    assert not {letter for letter in shown if ord(letter) < 32 and letter != "\n"} | (
        {"\x7f", "\x9b", "\u202e"} & set(shown)
    )
    assert "hello" in shown and "total 31 of 31" in " ".join(said(marking, "double").split())


HOSTILE_FILES = {
    "deep": b'{"cells": ' + b"[" * 200_000,
    "numbers": b'{"cells": [{"cell_type": "code", "source": ' + b"9" * 10_000 + b"}]}",
    "NaN": b'{"cells": NaN}',
    "surrogates": b'{"cells": [{"cell_type": "markdown", "source": "\\ud800 \\udfff", "metadata": {}}]}',
    "a cell that is itself a list": b'{"cells": [[[]], null, 7, {"cell_type": ["code"]}]}',
    "a grade id that is a list": (
        b'{"cells": [{"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": []}}}]}'
    ),
    "attachments that are none": (
        b'{"cells": [{"cell_type": "markdown", "source": "x", "attachments": {"a": 7, "b": {"image/png": {}}}}]}'
    ),
    "minus signs": b'{"cells": [{"cell_type": "code", "source": "' + b"-" * 150_000 + b'1", "metadata": {}}]}',
    "nots": b'{"cells": [{"cell_type": "code", "source": "' + b"not " * 40_000 + b'1", "metadata": {}}]}',
    "conditions": b'{"cells": [{"cell_type": "code", "source": "' + b"1 if 1 else " * 15_000 + b'1", "metadata": {}}]}',
    "cells without end": b'{"cells": [' + b'{"cell_type": "code", "source": "x"},' * 5_000 + b"{}]}",
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_hostile_file_costs_its_own_points_and_no_worker(name: str, course: Course) -> None:
    """Not run: that the trusted side gets as far as the sandbox is what is asked."""
    lab = course.lab()
    try:
        found = load_notebook(HOSTILE_FILES[name], "lab.ipynb")
    except UnreadableNotebook as error:
        assert str(error).startswith("lab.ipynb is") and len(str(error)) < 400
        return
    steps_of(transplant(lab.released, found).cells, {cell.grade_id: cell for cell in lab.graded})


def test_a_notebook_of_too_much_text_is_cut_and_says_so() -> None:
    cells = [{"cell_type": "code", "source": "x" * 190_000, "metadata": {}}] * 30
    found = load_notebook(json.dumps({"cells": cells}).encode(), "lab.ipynb")
    assert sum(len(cell.source) for cell in found.cells) <= 2_000_000 and len(found.notes) > 10


IN_REACH = {
    # Lab 1's `read_header`, written with what answers it; each is refused for what it imports.
    "torch's reader": "from torch.distributed.checkpoint import hf_storage",
    "safetensors": "from safetensors import safe_open",
    "transformers": "import transformers",
    "importlib": "import importlib",
    "the interpreter": "import sys",
    "all objects": "import gc",
    "C": "import ctypes",
    "the system": "import os",
    "another lab": "from xinfer_lab.labs.lab3.parts import neighbours",
}


@pytest.mark.bubblewrap
def test_what_answers_a_piece_is_neither_imported_nor_there(tmp_path: Path) -> None:
    (source,) = (path for path in SOLUTIONS if path.parent.name == "lab1-residency")
    given = submission(source)
    place = next(i for i, cell in enumerate(given["cells"]) if "def read_header" in "".join(cell["source"]))
    tries = "\n".join(
        f"try:\n    {line}\n    print('GOT', {name!r})\nexcept ImportError as error:\n    print('refused', {name!r})"
        for name, line in IN_REACH.items()
    )
    # Past the list, which a notebook can get around: what is not on disk cannot be had at all.
    past = (
        "import pathlib, torch\nlibraries = pathlib.Path(torch.__file__).parents[1]\n"
        "for name in ('safetensors', 'transformers', 'nbgrader', 'torch/distributed/checkpoint'):\n"
        "    print('FOUND' if list(libraries.joinpath(name).glob('*')) else 'nothing of', name)"
    )
    given["cells"].insert(place, code("tries", tries))
    given["cells"].insert(place, code("past", past))
    with Marker(open_sandbox("bubblewrap", hidden=(ROOT,))) as marker:
        marking = marker.mark(find_lab(ROOT, "lab1-residency"), parse_notebook(given))
    printed = "".join(marking.printed.values())
    assert "GOT" not in printed and printed.count("refused ") == len(IN_REACH), printed
    assert "FOUND" not in printed and printed.count("nothing of") == 4
    assert math.isclose(marking.score, marking.points)
