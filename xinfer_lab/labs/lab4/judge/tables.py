"""Lab 4: the judges of its two tables of states."""

from __future__ import annotations

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge

__all__ = ["EXPLAIN_STATES", "PREDICT_STATES"]


def _form(expected: Value, got: Value) -> Difference | None:
    """What is wrong with the form of a table, whatever its rows say."""
    rows, choices = expected["rows"], expected["choices"]
    wanted = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    if not isinstance(got, list) or len(got) != rows:
        hint = "Fill in the list that is there, a row each."
        return Difference("", f"a list of {rows} answers", shown(got), f"The table has {rows} rows.", hint)
    for number, row in enumerate(got, 1):
        if not (isinstance(row, str) and row in choices):
            return Difference(f"row {number}", wanted, shown(row), "A row is not filled in.")
    return None


def _made(expected: Value, got: Value, noun: str) -> Difference | None:
    return _form(expected, got)


PREDICT_STATES = Judge(
    truth=dict,
    passed="Your eight predictions are noted. Run on and compare.",
    noun="table",
    compare=_made,
    of_a_call=False,
)

_ROWS = (
    ("race", {
        "": (
            "Nobody waits: the copy may be running when the kernel reads. States have no part in it, since a "
            "state orders nothing across queues."
        ),
    }),
    ("needless", {
        "race": (
            "The direct queue waits for the fence, so the copy is over. What is out of date is the account, "
            "not the bytes."
        ),
        "rejected": (
            "For a buffer in COMMON, D3D12 takes any promotable state as a barrier's before. It lets this "
            "pass; you pay for a barrier."
        ),
        "right": (
            "The bytes are right, but the buffer is in COMMON: the read would have promoted it, and no "
            "barrier was needed."
        ),
    }),
    ("right", {
        "": "First the wait, then assume_common, then the use: fence and account both agree with what the device does.",
    }),
    ("rejected", {
        "right": (
            "A buffer decays when a call is over, not between two commands of it. assume_common changes the "
            "account, not the device."
        ),
        "": (
            "One queue runs in order, so nothing races. But within the call the buffer is in COPY_DEST, and "
            "the list has no barrier out of it."
        ),
    }),
    ("right", {
        "": (
            "Two calls: at the end of the first the buffer decays, and the second finds it in COMMON. One "
            "queue runs in order, so no fence is needed."
        ),
    }),
    ("rejected", {
        "": "Buffers of an upload heap are in GENERIC_READ for as long as they live. There is no barrier for them.",
    }),
)  # fmt: skip


def _right(expected: Value, got: Value, noun: str) -> Difference | None:
    if (fault := _form(expected, got)) is not None:
        return fault
    for number, (row, (truth, why)) in enumerate(zip(got, _ROWS, strict=True), 1):
        if row != truth:
            reason = why.get(row, why.get("", ""))
            return Difference(
                f"row {number}", "another answer", f'"{row}"', f"Row {number} says something else.", reason
            )
    return None


EXPLAIN_STATES = Judge(
    truth=dict,
    passed="All six rows are right: fence and state, each in its place.",
    noun="table",
    compare=_right,
    of_a_call=False,
)
