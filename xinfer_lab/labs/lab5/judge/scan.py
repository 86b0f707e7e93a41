"""Lab 5: what a scan that comes round again finds there, under LRU and under the best choice there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.choices import choice
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Judge, WrongModel

__all__ = ["BEST_HITS", "EXPLAIN_SCAN", "LRU_HITS"]

Inputs = Mapping[str, Value]
Count = Callable[[int, int, int], int]
Model = Callable[[Inputs], Value]


def _of(function: Count) -> Model:
    """A function of pages, frames and passes, for fewer frames than pages; with as many or more everything is found
    from the second pass on."""
    return _plain(
        lambda pages, frames, passes: pages * (passes - 1) if frames >= pages else function(pages, frames, passes)
    )


def _plain(function: Count) -> Model:
    return lambda inputs: function(inputs["pages"], inputs["frames"], inputs["passes"])


def best(pages: int, frames: int, passes: int) -> int:
    """Hits where the page that was used just now goes. After the first ``frames`` uses, which fetch, ``pages - 1`` uses
    in a row are ``pages - frames`` that fetch and then ``frames - 1`` hits, again and again."""
    rounds, rest = divmod(pages * passes - frames, pages - 1)
    return rounds * (frames - 1) + max(0, rest - (pages - frames))


def _call(name: str) -> Callable[[Case], str]:
    return lambda case: f"{name}({case.inputs['pages']}, {case.inputs['frames']}, {case.inputs['passes']})"


LRU_HITS = Judge(
    truth=_of(lambda pages, frames, passes: 0),
    passed="All or nothing: with one frame too few, LRU finds not a single page.",
    noun="number of hits",
    call=_call("lru_hits"),
    besides=("whole",),
    wrong=(
        WrongModel(
            "What fits is found",
            "A hit rate of frames / pages needs pages that are asked for at random. These come in a circle, and the "
            "one that is needed next was given up just before.",
            _of(lambda pages, frames, passes: frames * (passes - 1)),
            rule="longest_ago",
        ),
        WrongModel(
            "One frame for what passes through, the others keep their pages",
            "That would be a fixed set. LRU keeps no page for longer than as many uses as there are frames.",
            _of(lambda pages, frames, passes: (frames - 1) * (passes - 1)),
            rule="longest_ago",
        ),
        WrongModel(
            "The first pass finds pages too",
            "The pool is empty at first: the first pass fetches everything.",
            _plain(lambda pages, frames, passes: pages * passes if frames >= pages else 0),
            rule="first_pass",
        ),
        WrongModel(
            "An exact fit does not count",
            "With as many frames as pages nothing has to go.",
            _plain(lambda pages, frames, passes: pages * (passes - 1) if frames > pages else 0),
            rule="all_fit",
        ),
        WrongModel(
            "One frame too few is enough",
            "With one frame too few each page goes just before it is needed.",
            _plain(lambda pages, frames, passes: pages * (passes - 1) if frames >= pages - 1 else 0),
            rule="longest_ago",
        ),
        WrongModel(
            "Always nothing",
            "Where all pages fit, LRU finds all of them from the second pass on.",
            _plain(lambda pages, frames, passes: 0),
            rule="all_fit",
        ),
        WrongModel(
            "The misses are counted",
            "Hits are the uses that find their page there.",
            _plain(lambda pages, frames, passes: pages * passes if frames < pages else pages),
            rule="hits",
        ),
        WrongModel(
            "The best choice there is",
            "That is what Belady's rule finds. LRU gives up the page that is needed next.",
            _of(best),
            rule="longest_ago",
        ),
    ),
)

BEST_HITS = Judge(
    truth=_of(best),
    passed="No policy finds more: the page that was used just now is the one that is needed last.",
    noun="number of hits",
    call=_call("best_hits"),
    besides=("whole",),
    wrong=(
        WrongModel(
            "A fixed set of all frames but one",
            "It comes close, and so does the long run's average, rounded down. But a page that passes through stays "
            "until its frame is needed, so now and then one more is found: play it use by use.",
            _of(lambda pages, frames, passes: (frames - 1) * (passes - 1)),
            rule="just_before",
        ),
        WrongModel(
            "A fixed set of all frames",
            "The pages that do not stay pass through a frame too, so one frame cannot keep its page.",
            _of(lambda pages, frames, passes: frames * (passes - 1)),
            rule="just_before",
        ),
        WrongModel(
            "The long run from the first pass on",
            "The pool is empty at first, and a pass finds more or less than the average.",
            _of(lambda pages, frames, passes: pages * (frames - 1) * passes // (pages - 1)),
            rule="just_before",
        ),
        WrongModel(
            "The long run from the second pass on",
            "The average holds in the long run; a few passes find more or less. Count them.",
            _of(lambda pages, frames, passes: pages * (frames - 1) * (passes - 1) // (pages - 1)),
            rule="just_before",
        ),
        WrongModel(
            "The least recently used page goes",
            "On a circle that is the page that is needed next. The one that was used just now is needed last.",
            _of(lambda pages, frames, passes: 0),
            rule="just_before",
        ),
        WrongModel(
            "The misses are counted",
            "Hits are the uses that find their page there.",
            lambda inputs: inputs["pages"] * inputs["passes"] - _of(best)(inputs),
            rule="hits",
        ),
        WrongModel(
            "Nothing is found where all pages fit",
            "With as many frames as pages, or more, nothing has to go: all is found from the second pass on.",
            _plain(lambda pages, frames, passes: best(pages, frames, passes) if frames < pages else 0),
            rule="all_fit",
        ),
        WrongModel(
            "Found when it is fetched",
            "A use that has to fetch its page is no hit: count before you fetch.",
            _plain(lambda pages, frames, passes: pages * passes),
            rule="first_pass",
        ),
    ),
)

EXPLAIN_SCAN = choice(
    "B",
    {
        "A": "LRU keeps its books in a few steps a use. It is the copies that cost, and there are many of them.",
        "C": "Through the same four frames another choice finds some pages there: see the second picture.",
        "D": "Every page is used equally often: once in each pass. Counting uses would tell nothing either.",
    },
)
