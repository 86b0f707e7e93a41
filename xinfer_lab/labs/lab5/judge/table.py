"""Lab 5: what a page table has to say after each call, and what wrong ideas about it would say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, WrongModel
from xinfer_lab.labs.lab5.judge.shared_books import shared_books

__all__ = ["TABLE", "TABLE_REFUSES"]

Inputs = Mapping[str, Value]
REFUSED = "PageError"


class Books:
    """Pages by what they are: on their way, arrived, written; and the users of each. ``ideas`` are the wrong ones that
    it follows. Kept in another shape than a table of entries: a state is worked out, not stored."""

    def __init__(self, pages: int, frames: int, ideas: frozenset[str]) -> None:
        self.pages, self.frames, self.ideas = pages, frames, ideas
        self.place: dict[int, int] = {}
        self.owner: dict[int, int] = {}
        self.arrived: set[int] = set()
        self.stale: dict[int, str] = {}
        self.dirty: set[int] = set()
        self.users: Counter[int] = Counter()

    def follows(self, idea: str) -> bool:
        """Whether it goes by this wrong idea."""
        return idea in self.ideas

    def state(self, page: int) -> str:
        """The page's state."""
        if page not in self.place:
            return self.stale.get(page, "IN_HOST")
        return "IN_DEVICE" if page in self.arrived or self.follows("there at once") else "MIGRATING"

    def free(self) -> list[int]:
        """Frames without an owner, in growing order."""
        return [frame for frame in range(self.frames) if frame not in self.owner]

    def reason(self, name: str, page: int, frame: int | None) -> str | None:
        """Why this call has to be refused; None where it is in order."""
        if name == "mark_dirty":  # it is given, so no idea changes it
            return None if self.users[page] else f"nobody uses page {page}"
        if self.follows("refuses nothing"):
            return None
        state = self.state(page)
        again = page in self.place and self.place[page] == frame
        match name:
            case "bind" if again and self.follows("its own frame"):
                return None
            case "bind" if page in self.place and not self.follows("two frames"):
                return f"page {page} lies in frame {self.place[page]} already"
            case "bind" if frame in self.owner and not self.follows("takes frames"):
                return f"frame {frame} belongs to page {self.owner[frame]}"
            case "arrive" if state == "IN_HOST" and not self.follows("arrives from anywhere"):
                return f"page {page} has no frame and is not on its way"
            case "arrive" if state == "IN_DEVICE" and not self.follows("arrives from anywhere"):
                return f"page {page} has arrived already"
            case "pin" if state != "IN_DEVICE":
                early = state == "MIGRATING" and self.follows("reads too early")
                return None if early else f"page {page} is {state}: its bytes are not there"
            case "unpin" if self.users[page] <= 0 and not self.follows("counts below zero"):
                return f"nobody uses page {page}"
            case "unbind" if page not in self.place:
                return None if self.follows("leaves from anywhere") else f"page {page} has no frame"
            case "unbind" if state == "MIGRATING" and self.follows("only what arrived leaves"):
                return f"page {page} is on its way"
            case "unbind" if self.users[page] and not self.follows("drops what is used"):
                return f"page {page} is used"
            case "unbind" if page in self.dirty and not self.follows("drops what is written"):
                return f"page {page} was written, and its bytes are not at home"
        return None

    def call(self, name: str, page: int, frame: int | None = None) -> str:
        """Do it; returns how it went."""
        refused = self.reason(name, page, frame) is not None
        if refused and (name == "mark_dirty" or not self.follows("changes, then refuses")):
            if name == "unbind" and self.follows("cleans, then refuses"):
                self.dirty.discard(page)
            return REFUSED
        did = getattr(self, name)(page, frame)
        return REFUSED if refused else did or "done"

    def bind(self, page: int, frame: int) -> None:
        """The page comes."""
        self.stale.pop(page, None)
        self.place[page] = frame
        self.arrived.discard(page)
        if not self.follows("one way"):
            self.owner[frame] = page

    def arrive(self, page: int, _: None) -> None:
        """The page is there."""
        if self.follows("never arrives"):
            return
        if page in self.place:
            self.arrived.add(page)
        else:
            self.stale[page] = "IN_DEVICE"

    def pin(self, page: int, _: None) -> None:
        """One user more."""
        if self.follows("clean for the next user"):
            self.dirty.discard(page)
        self.users[page] = 1 if self.follows("a pin is a flag") else self.users[page] + 1

    def unpin(self, page: int, _: None) -> str | None:
        """One user less."""
        self.users[page] -= 1
        if self.follows("released is evicted") and not self.users[page]:
            self.unbind(page, None)
        return None

    def unbind(self, page: int, _: None) -> str:
        """The page goes."""
        state, frame = self.state(page), self.place.pop(page, None)
        self.arrived.discard(page)
        self.stale.pop(page, None)
        if self.follows("keeps its state"):
            self.stale[page] = state
        if not self.follows("keeps the frame"):
            self.owner.pop(frame, None)  # type: ignore[arg-type]
        return "returned None" if self.follows("returns nothing") else f"returned {frame!r}"

    def mark_dirty(self, page: int, _: None) -> None:
        """The page is written."""
        self.dirty.add(page)

    def mark_clean(self, page: int, _: None) -> None:
        """The page is at home as it is there."""
        self.dirty.discard(page)

    def look(self, pages: Iterable[int], frames: Iterable[int]) -> dict[str, str]:
        """What the table says of these pages and frames, and which frame is free first."""
        free = self.free()
        first: int | None = free[0] if free else None
        if self.follows("the last frame") and free:
            first = free[-1]
        if self.follows("counts up"):
            first = len(self.place) if len(self.place) < self.frames else None
        said = {
            f"page {page}": f"{self.state(page)}, frame {self.place.get(page)!r}, pins {self.users[page]!r}, "
            f"dirty {page in self.dirty}"
            for page in pages
        }
        said |= {f"frame {frame}": f"page_in {self.owner.get(frame)!r}" for frame in frames}
        return said | {"free_frame()": repr(first)}


def _played(*ideas: str) -> Callable[[Inputs], Value]:
    def play(inputs: Inputs) -> Value:
        books = Books(inputs["pages"], inputs["frames"], frozenset(ideas))
        steps = []
        for name, *arguments in inputs["calls"]:
            why = books.reason(name, arguments[0], arguments[1] if len(arguments) > 1 else None)
            did = books.call(name, *arguments)
            text = f"{name}({', '.join(map(str, arguments))})"
            steps.append({"did": did, "look": books.look(**inputs["look"]), "call": text, "why": why})
        return steps

    return play


def _step(expected: Mapping[str, Value], got: Mapping[str, Value]) -> tuple[str, str, str, str | None] | None:
    """Headline, wanted, found and a hint where one step parts from the truth."""
    call, why, did = expected["call"], expected["why"], str(got["did"])
    if did != expected["did"]:
        if expected["did"] == REFUSED:
            went = did == "done" or did.startswith("returned")
            headline = f"{call} has to be refused{'' if went else ' with PageError'}."
            return headline, f"PageError, because {why}", did, None
        if did == REFUSED:
            return f"{call} is refused, and it is in order.", expected["did"], did, None
        return f"{call} does not do what it should.", expected["did"], did, None
    for place, wanted in expected["look"].items():
        found = str(got["look"].get(place))
        if found == wanted:
            continue
        headline = (
            f"{call} was refused, and something changed." if why else f"After {call} the table says something else."
        )
        hint = "A refusal changes nothing: look first, then change." if why else None
        return headline, f"{place}: {wanted}", f"{place}: {found}", hint
    return None


def _compare(expected: Value, got: Value, noun: str) -> Difference | None:
    unreadable = Difference("", f"{len(expected)} calls", shown(got), "The recording of this table cannot be read.")
    if not isinstance(got, list) or len(got) > len(expected):
        return unreadable
    for number, (right, step) in enumerate(zip(expected, got, strict=False), 1):
        if not isinstance(step, dict) or not isinstance(step.get("look"), dict) or "did" not in step:
            return unreadable
        if (found := _step(right, step)) is not None:
            headline, wanted, seen, hint = found
            calls = [earlier["call"] for earlier in expected[:number]]
            shown_calls = ["..."] * (len(calls) > 6) + calls[-6:]
            line = step.get("free_line" if wanted.startswith("free_frame()") else "line")
            own = line[:200] if isinstance(line, str) else None
            return Difference("; ".join(shown_calls), wanted, seen, headline, hint, own)
    return None if len(got) == len(expected) else unreadable


def _call(case: Case) -> str:
    return f"PageTable({case.inputs['pages']}, {case.inputs['frames']}), {case.label}"


def _idea(name: str, explanation: str, idea: str, rule: str = "") -> WrongModel:
    return WrongModel(name, explanation, _played(idea), rule=rule)


_MOVES = (
    _idea(
        "One direction only",
        "Page to frame and frame to page are two notes, and bind has to make both: without the second one nobody knows "
        "that a frame is taken.",
        "one way",
        "both_ways",
    ),
    _idea(
        "There as soon as it is bound",
        "A bound page is MIGRATING until arrive is called.",
        "there at once",
        "on_its_way",
    ),
    _idea(
        "Nobody ever arrives",
        "arrive makes a MIGRATING page IN_DEVICE: before that nobody may use it.",
        "never arrives",
        "arrives",
    ),
    _idea(
        "A pin is a flag",
        "A page may have several users at once, so count them: the first who releases it must not free it for all.",
        "a pin is a flag",
        "counted",
    ),
    _idea(
        "Clean for the next user",
        "Another user changes nothing about what was written: the page is dirty until it was copied home, which "
        "mark_clean says.",
        "clean for the next user",
        "stays_dirty",
    ),
    _idea(
        "Released is evicted",
        "A page that nobody uses stays where it is, and may be found there again. It leaves when unbind is called.",
        "released is evicted",
        "stays",
    ),
    _idea(
        "The frame is not given back",
        "unbind has to free the frame too: its owner is nobody then.",
        "keeps the frame",
        "frees",
    ),
    _idea("It left, and is still IN_DEVICE", "A page without a frame is IN_HOST.", "keeps its state", "in_host"),
    _idea("The highest free frame", "free_frame gives the lowest one.", "the last frame", "lowest"),
    _idea(
        "Frames in order of arrival",
        "Pages leave in any order, so the number of bound pages says nothing about which frame is free.",
        "counts up",
        "lowest",
    ),
    _idea("The frame is kept for itself", "unbind returns the frame that it freed.", "returns nothing", "returns"),
    _idea(
        "Only what has arrived may leave",
        "A page that was fetched for nothing may go as well: what comes into its frame comes by the same queue, later.",
        "only what arrived leaves",
        "may_leave",
    ),
)

_REFUSALS = (
    _idea("Nothing is refused", "A table that takes every call hides its callers' mistakes.", "refuses nothing"),
    _idea(
        "Changed, then refused",
        "Whoever catches the error finds a table that was changed by half: look first, then change.",
        "changes, then refuses",
        "changes_nothing",
    ),
    _idea(
        "Refused, and clean from then on",
        "The page that was not let go is as dirty as before: asked again, the table must refuse again. A refusal "
        "changes nothing.",
        "cleans, then refuses",
        "stays_dirty",
    ),
    _idea(
        "Its own frame is no other",
        "A page that has a frame is bound already, and may be there: bind would send it on its way again. It is "
        "refused for the frame that it has, too.",
        "its own frame",
        "own_frame",
    ),
    _idea(
        "A page in two frames", "A page that has a frame cannot be bound to another one.", "two frames", "other_frame"
    ),
    _idea(
        "A frame with two owners",
        "bind has to look at frame to page too: the frame may be taken.",
        "takes frames",
        "taken_frame",
    ),
    _idea(
        "Arrived from anywhere",
        "Only a MIGRATING page arrives, and it does so once.",
        "arrives from anywhere",
        "arrive",
    ),
    _idea(
        "Read while it migrates",
        "A page that is on its way is not read: pin waits for arrive.",
        "reads too early",
        "pin",
    ),
    _idea("Fewer than no users", "Who releases a page twice releases somebody else's.", "counts below zero", "unpin"),
    _idea(
        "A page that is used may go",
        "Pins are for this: somebody still reads these bytes.",
        "drops what is used",
        "leave_used",
    ),
    _idea(
        "Written bytes are dropped",
        "The only copy of what was written is the one in the frame, until it was copied home.",
        "drops what is written",
        "leave_dirty",
    ),
    _idea(
        "Leaves without having been there",
        "A page without a frame has none to give up.",
        "leaves from anywhere",
        "leave_frameless",
    ),
)

_SHARED = shared_books("tables", _played(), _compare)

TABLE = Judge(
    truth=_played(),
    passed="Pages find their frames and frames their pages.",
    noun="table",
    call=_call,
    compare=_compare,
    wrong=(_SHARED, *_MOVES),
    besides=("hundreds",),
)

TABLE_REFUSES = Judge(
    truth=_played(),
    passed="What is out of order is refused, and a refusal changes nothing.",
    noun="table",
    call=_call,
    compare=_compare,
    wrong=(_SHARED, *_REFUSALS, *(replace(idea, rule="") for idea in _MOVES)),
    besides=("page_error", "hundreds"),
)
