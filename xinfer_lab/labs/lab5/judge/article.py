"""Lab 5: what is wrong with the short pool in which it opens, line by line."""

from __future__ import annotations

from xinfer_lab.grading.choices import one_of
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge

__all__ = ["EXPLAIN_ARTICLE"]

_ROWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("C", {
        "F": "The line says what the table holds. Ask who should have written the frame's number into it, and when.",
        "A": "None is the right thing to begin with. Where should it become a number?",
        "": "The frame is known for a moment, at the place where it is taken from the list. Nobody notes it.",
    }),
    ("B", {
        "E": (
            "The loop waits for something that was never begun. A loop with more patience would not help: which line "
            "gave up before a copy was submitted?"
        ),
        "D": (
            "No copy was submitted here, so nothing was signalled either. What does prefetch do where no frame is "
            "free?"
        ),
        "": "The third page needs a frame, and both are taken. Which line decides what happens then?",
    }),
    ("E", {
        "D": "The copy is signalled, so somebody could wait for it. Which line should have let the direct queue wait?",
        "": (
            "A host that looks at a flag holds back the host, not the direct queue. Look for the place where a queue "
            "should have been told to wait for the fence."
        ),
    }),
    ("F", {
        "B": "Suppose that this line did evict a page. How would it know which one is not being read?",
        "": "Which call says that a page is not used any more, and what does it write down?",
    }),
)  # fmt: skip


def _compare(expected: Value, got: Value, noun: str) -> Difference | None:
    rows, choices = expected["rows"], expected["choices"]
    wanted = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    if not isinstance(got, list) or len(got) != rows:
        hint = "Fill in the list that is there, a row each."
        return Difference("", f"a list of {rows} letters", shown(got), f"The table has {rows} rows.", hint)
    got = [one_of(choices, row) for row in got]
    for number, row in enumerate(got, 1):
        if not (isinstance(row, str) and row in choices):
            if row is None or row is Ellipsis:
                return Difference(f"row {number}", wanted, shown(row), "A row is not filled in.")
            hint = "Type one of the letters, in quotes."
            return Difference(f"row {number}", wanted, shown(row), f"Row {number} has none of the letters.", hint)
    for number, (row, (truth, why)) in enumerate(zip(got, _ROWS, strict=True), 1):
        if row != truth:
            reason = why.get(row, why[""])
            return Difference(f"row {number}", "another line", f'"{row}"', f"Row {number} has another cause.", reason)
    return None


EXPLAIN_ARTICLE = Judge(
    truth=dict,
    passed="Each symptom has its cause: no frame is bound, none is given up, no queue waits, and nobody counts users.",
    noun="table",
    compare=_compare,
    of_a_call=False,
)
