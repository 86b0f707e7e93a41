"""Lab 5: which page CLOCK gives up, and which one wrong ideas about it would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome, WrongModel
from xinfer_lab.labs.lab5.judge.shared_books import shared_books
from xinfer_lab.labs.lab5.policy import play_policy

__all__ = ["CLOCK", "CLOCK_PINS", "Dial"]

Inputs = Mapping[str, Value]


class Dial:
    """CLOCK with the ring as it lies before the hand, the next page to be looked at first. ``ideas`` are the wrong ones
    that it follows; ``moments`` say how the ring lay at each choice."""

    def __init__(self, *ideas: str) -> None:
        self.ideas = frozenset(ideas)
        self.ring: list[int] = []
        self.marks: set[int] = set()
        self.came: list[int] = []
        self.moments: list[str] = []

    def _does(self, idea: str) -> bool:
        return idea in self.ideas

    def placed(self, page: int) -> None:
        """The page comes just behind the hand, marked."""
        self.came.append(page)
        self.ring = [page, *self.ring] if self._does("a new page comes before the hand") else [*self.ring, page]
        if not self._does("a new page is not marked"):
            self.marks.add(page)

    def used(self, page: int) -> None:
        """The page is marked."""
        if self._does("by age") or self._does("newest first"):
            self.ring = [*(other for other in self.ring if other != page), page]
        elif not self._does("uses are not noted"):
            self.marks.add(page)

    def removed(self, page: int) -> None:
        """The page leaves the ring."""
        self.came.remove(page)
        if not self._does("pages stay in the ring"):
            self.ring.remove(page)
            self.marks.discard(page)

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The page to give up."""
        words = {(True, True): "marked", (True, False): "without a mark"}
        lie = [f"{page} {words.get((may_go(page), page in self.marks), 'may not go')}" for page in self.ring]
        self.moments.append("From the hand on: " + ", ".join(lie) + ".")
        if self._does("nobody is asked"):
            may_go = _anything
        if self._does("by age") or self._does("newest first"):
            order = self.ring[::-1] if self._does("newest first") else self.ring
            return next((page for page in order if may_go(page)), None)
        if self._does("the hand begins anew"):
            self.ring.sort(key=self.came.index)
        if self._does("marks go all at once"):
            if (
                found := next((page for page in self.ring if may_go(page) and page not in self.marks), None)
            ) is not None:
                place = self.ring.index(found) + 1
                self.ring = self.ring[place:] + self.ring[:place]
                return found
            self.marks.clear()
        return self._turn(may_go)

    def _turn(self, may_go: Callable[[int], bool]) -> int | None:
        for _ in range((1 if self._does("a single round") else 2) * len(self.ring)):
            page = self.ring[0]
            self.ring = [*self.ring[1:], page]
            if may_go(page) and page not in self.marks:
                return page
            if not may_go(page) and self._does("stops at what may not go"):
                return None
            if (may_go(page) or self._does("what may not go loses its mark")) and not self._does("marks stay"):
                self.marks.discard(page)
        return self.ring[0] if self.ring and self._does("somebody has to go") else None


def _anything(page: int) -> bool:
    return True


def _played(*ideas: str) -> Callable[[Inputs], Value]:
    return lambda inputs: play_policy(Dial(*ideas), inputs)


def _compare(expected: Value, got: Value, noun: str) -> Difference | None:
    victims = got.get("victims") if isinstance(got, dict) else got
    if not isinstance(victims, list):
        return Difference("", shown(expected), shown(got), "The recording of these choices cannot be read.")
    line = got.get("line") if isinstance(got, dict) else None
    own = line[:200] if isinstance(line, str) else None
    for number, (right, page) in enumerate(zip(expected, victims, strict=False), 1):
        if type(right) is type(page) and right == page:
            continue
        wanted = "None: no page may go" if right is None else f"page {right}"
        found = f"page {page}" if type(page) is int else shown(page)
        if page is None:
            headline = "It gives up no page, and one may go."
        elif right is None:
            headline = "It gives up a page, and none may go."
        else:
            headline = "It gives up another page."
        return Difference(f"choice {number}", wanted, found, headline, line=own)
    if len(victims) != len(expected):
        return Difference("", shown(expected), shown(victims), "There are more or fewer choices.", line=own)
    return None


def _moment(inputs: Inputs, outcome: Outcome) -> str:
    """How the ring lies at the first choice that is another one."""
    dial = Dial()
    expected = play_policy(dial, inputs)
    got = outcome.value.get("victims", []) if isinstance(outcome.value, dict) else []
    first = next((n for n, pair in enumerate(zip(expected, got, strict=False)) if pair[0] != pair[1]), 0)
    return dial.moments[first] if first < len(dial.moments) else ""


def _call(case: Case) -> str:
    uses = case.inputs["uses"]
    first = ", ".join(_use(use) for use in uses[:12]) + (", ..." if len(uses) > 12 else "")
    return f"{case.label}, {case.inputs['frames']} frames, uses {first}"


def _use(use: Sequence[Value]) -> str:
    what, page, held = use
    words = f"{page}" if what == "used" else f"{page} ({what})"
    return f"{words} while {' and '.join(map(str, held))} may not go" if held else words


def _idea(name: str, explanation: str, idea: str, rule: str) -> WrongModel:
    return WrongModel(name, explanation, _played(idea), rule=rule)


_IDEAS = (
    _idea(
        "First in, first out",
        "A page that was used gets a second chance: used marks it.",
        "uses are not noted",
        "used_marks",
    ),
    _idea(
        "Least recently used", "CLOCK knows whether a page was used since the hand came by, not when.", "by age", "ring"
    ),
    _idea("Most recently used", "The hand comes to pages in the order of the ring.", "newest first", "ring"),
    _idea(
        "The hand begins anew",
        "The hand stays where it stopped; the next search begins there, not at the page that came first.",
        "the hand begins anew",
        "hand_stays",
    ),
    _idea(
        "No page is ever found",
        "The hand takes away the mark of each page that it passes, so the second time it comes that page may go. Does "
        "choose take marks away, and does it return the page?",
        "marks stay",
        "takes_marks",
    ),
    _idea(
        "Marks go all at once",
        "The hand takes away the marks that it passes on its way, also where it finds a page without one.",
        "marks go all at once",
        "takes_marks",
    ),
    _idea(
        "A single round",
        "If all pages are marked, the second round finds them without.",
        "a single round",
        "two_rounds",
    ),
    _idea(
        "A new page has no mark",
        "A page that just came is marked, or it would be the next to go.",
        "a new page is not marked",
        "comes_marked",
    ),
    _idea(
        "A new page comes before the hand",
        "A new page comes just behind the hand: the hand sees it last.",
        "a new page comes before the hand",
        "behind_the_hand",
    ),
    _idea(
        "Pages stay in the ring",
        "removed takes a page out of the ring: it has no frame to give up.",
        "pages stay in the ring",
        "removed",
    ),
)

_PINS = (
    _idea(
        "Nobody is asked whether a page may go",
        "Ask may_go(page) of each page before you look at its mark.",
        "nobody is asked",
        "asks",
    ),
    _idea(
        "What may not go loses its mark",
        "The hand passes over a page that may not go, and leaves it as it is.",
        "what may not go loses its mark",
        "keeps_mark",
    ),
    _idea(
        "It stops at what may not go",
        "The hand goes on past a page that may not go; None is for when it has been round twice.",
        "stops at what may not go",
        "passes_over",
    ),
    _idea(
        "Somebody has to go",
        "Where none may go, choose returns None: the pool says no then, and takes no page that is being used.",
        "somebody has to go",
        "none",
    ),
)

_SHARED = shared_books("policies", _played(), _compare)

CLOCK = Judge(
    truth=_played(),
    passed="Every page that was used gets its second chance.",
    noun="list of choices",
    call=_call,
    compare=_compare,
    wrong=(_SHARED, *_IDEAS),
    besides=("hundreds",),
    tried=_moment,
)

CLOCK_PINS = Judge(
    truth=_played(),
    passed="What may not go stays, and keeps its mark.",
    noun="list of choices",
    call=_call,
    compare=_compare,
    wrong=(_SHARED, *_PINS, *(replace(idea, rule="") for idea in _IDEAS)),
    besides=("hundreds",),
    tried=_moment,
)
