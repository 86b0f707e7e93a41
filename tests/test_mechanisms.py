"""Right numbers by the wrong mechanism do not pass, and the report on each check says which mechanism is missing.

Four ways to the right numbers: every layer stays resident, more device memory than the plan has, copying and computing
in turns, the host waiting where a queue should. Each is asked wherever it is not the task itself.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from tests.answer_bank import answers, checks_of, concerned, run
from xinfer_lab.grading import Report, examine

KNOWN = {answer.name: answer for kind in ("wrong", "cheat") for answer in answers(kind)}

ROOM = [
    "there is room for one slot",
    "the plan has room for n slots",
    "the plan has room for n layers",
    "asks for more device memory than there is",
]
TURNS = [
    "copying and computing take turns",
    "as soon as step s has been handed in, the upload for step s + n goes out",
    "a copy that begins when the page is needed cannot be hidden",
]
BLOCKS = [
    "while the host blocks it",
    "wait_idle() makes every race go away, and with them all that ran at the same time",
    "wait_idle() waits for both queues, and with it all that ran at the same time is gone",
]

RESIDENT = {
    "lab2/SerialLayers/wrong/a_slot_for_each_layer",
    "lab3/ensure/cheat/resident_source",
    "lab4/ensure/cheat/resident_source",
    "lab4/StreamingLayers/wrong/resident",
    "lab4/StreamingLayers/cheat/resident_layers",
    "lab4/ordering/wrong/resident",
    "lab4/wrap_around/wrong/one_slot_per_layer",
}
OVER_BUDGET = {
    "lab3/prefetch/wrong/a_slot_for_every_layer",
    "lab4/lifetime/wrong/frees_at_the_end",
    "lab5/prefetch/cheat/a_buffer_for_every_page",
}
SERIAL = {
    "lab3/prefetch/wrong/serial",
    "lab3/prefetch/wrong/serial_with_three_slots",
    "lab4/StreamingLayers/wrong/serial",
    "lab4/ordering/wrong/uploads_when_needed",
    "lab5/prefetch/wrong/on_demand",
}
HOST = {
    "lab2/CopyEngine/wrong/host_blocks",
    "lab2/CopyEngine/wrong/synchronises_everything",
    "lab2/SerialLayers/wrong/host_waits_for_copy",
    "lab2/SerialLayers/wrong/synchronises_everything",
    "lab3/ensure/wrong/host_waits",
    "lab3/prefetch/wrong/host_waits_for_each",
    "lab3/prefetch/wrong/synchronises",
    "lab3/release/wrong/host_waits",
    "lab3/wait_until_read/wrong/host_waits",
    "lab4/StreamingLayers/wrong/host_waits",
    "lab4/StreamingLayers/wrong/synchronises",
    "lab4/ensure/wrong/host_waits",
    "lab4/ensure/wrong/wait_idle",
    "lab4/lifetime/wrong/synchronises",
    "lab4/mid_call/wrong/synchronises",
    "lab4/ordering/wrong/host_waits",
    "lab4/wrap_around/wrong/synchronises",
    "lab5/acquire/wrong/host_waits",
    "lab5/acquire/wrong/synchronises",
    "lab5/evict/wrong/host_waits",
    "lab5/prefetch/wrong/host_waits",
    "lab5/prefetch/wrong/synchronises",
    "lab5/release/wrong/host_waits",
    "lab5/release/wrong/synchronises",
}
MECHANISMS = {"resident": (RESIDENT, ROOM), "over budget": (OVER_BUDGET, ROOM), "serial": (SERIAL, TURNS)} | {
    "host-synchronised": (HOST, BLOCKS)
}
ASKED = [(mechanism, name) for mechanism, (names, _) in MECHANISMS.items() for name in sorted(names)]

# In Lab 2 the task is serial streaming itself, and one slot is the plan. Lab 1 has no queue: see below.
GATES = {
    "lab2": {"resident", "host-synchronised"},
    "lab3": {"resident", "over budget", "serial", "host-synchronised"},
    "lab4": {"resident", "serial", "host-synchronised"},
    "lab5": {"over budget", "serial", "host-synchronised"},
}


def failing(name: str) -> dict[str, Report]:
    """Check -> report, of all checks that the answer fails."""
    answer = KNOWN[name]
    with redirect_stdout(io.StringIO()):
        names = run(answer)
        checks = checks_of(answer.lab)
        reports = {check: examine(check, names[checks[check]]) for check in concerned(answer.lab, answer.function)}
    return {check: report for check, report in reports.items() if not report.passed}


@pytest.mark.sampled
@pytest.mark.parametrize(("mechanism", "name"), ASKED)
def test_the_wrong_mechanism_fails_and_every_report_on_it_names_what_is_missing(mechanism: str, name: str) -> None:
    reports = failing(name)
    assert KNOWN[name].checks <= reports.keys()
    for check, report in reports.items():
        words = " ".join(str(report).lower().split())
        assert any(said in words for said in MECHANISMS[mechanism][1]), f"{check}: {report}"


@pytest.mark.parametrize("lab", GATES)
def test_every_gate_is_tried_with_every_mechanism_that_is_not_its_task(lab: str) -> None:
    tried = {
        mechanism for mechanism, name in ASKED if name.startswith(f"{lab}/") and f"{lab}.gate" in KNOWN[name].checks
    }
    assert tried == GATES[lab]


def test_lab_1_s_gate_says_that_what_always_is_resident_goes_over_the_budget() -> None:
    report = failing("lab1/decide_residency/cheat/always_resident")["lab1.gate"]
    assert "budget" in str(report), str(report)
