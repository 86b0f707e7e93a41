"""Lab 5: the judge of the gate: experts, keys and values through one pool give the resident run's bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.errors import DeviceError, OutOfDeviceMemory, format_bytes
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.labs.lab5.judge.expected import expected_run, nothing_beside_the_pool
from xinfer_lab.labs.lab5.judge.page_rules import fetched_ahead
from xinfer_lab.labs.lab5.judge.rules import MOVES, WAITS
from xinfer_lab.labs.lab5.judge.signs import BLAME
from xinfer_lab.labs.lab5.judge.use_ideas import GATE_IDEAS
from xinfer_lab.labs.lab5.mixture_case import MixtureCase, resident_run
from xinfer_lab.labs.lab5.pages import pages_of
from xinfer_lab.residency.parity import compare_logits, parity_line

__all__ = ["GATE", "hit_rates"]

SHARE = 0.75
"""Of CLOCK's hit rate. Other policies that make sense reach nine tenths of it and more, by luck all of it: what they
choose is for the pieces about CLOCK to say, and no matter for a gate whose requests are drawn."""


def hit_rates(evidence: Evidence) -> tuple[float, float]:
    """The share of acquisitions for which no page was brought: this pool's, by the copies in its stream, and that of
    the course's pool in the same run of the model. Below 0 where more was fetched ahead than was used.
    """
    expected = expected_run(evidence.case)
    acquired = sum(count for (name, _), count in expected.acquired.items() if name == "acquire")
    brought = len(pages_of(evidence).brought), len(expected.pages.brought)
    return 1 - brought[0] / max(1, acquired), 1 - brought[1] / max(1, acquired)


def keeps_what_clock_keeps(evidence: Evidence) -> Fault | None:
    """The hit rate is at least `SHARE` of CLOCK's for the same requests, where CLOCK has one."""
    ours, clocks = hit_rates(evidence)
    if ours >= SHARE * clocks or clocks <= 0:
        return None
    return Fault(
        "hit-rate",
        "Pages leave that are needed again soon.",
        expected=f"a hit rate of at least three quarters of CLOCK's for the same requests, {SHARE * clocks:.3f}",
        got=f"{ours:.3f}: {len(pages_of(evidence).brought)} pages brought, where CLOCK brings "
        f"{len(expected_run(evidence.case).pages.brought)}",
        show=False,
    )


def really_brought(evidence: Evidence) -> Fault | None:
    """What the direct queue uses in the pool came from its home, on the direct queue alone, in every layer and pass."""
    for use in pages_of(evidence).uses:
        if use.fetched is None or use.page is None:
            return Fault(
                "not-brought",
                f"Frame {use.frame} is used, and no page has come there.",
                expected="a copy from the page's home",
                got="none",
                records=(use.record,),
            )
        if use.queue != "direct":
            return Fault("stranger", f"The {use.queue} queue uses frame {use.frame}.", records=(use.record,))
    return None


def parity(evidence: Evidence) -> Fault | None:
    """The stream, replayed under the case's budget, gives the resident run's logits byte for byte, in two orders."""
    case: MixtureCase = evidence.case
    expected = resident_run(case).logits
    for schedule in ("timed", "copies_last"):
        try:
            replayed = evidence.replay(schedule)
        except OutOfDeviceMemory as error:
            return Fault(
                "over-budget",
                "More device memory is used than there is.",
                expected=f"a peak of at most {format_bytes(case.memory)}: {case.frames} frames beside what stays",
                got=str(error),
            )
        except DeviceError as error:
            return Fault("inadmissible", f"The stream cannot be run: {type(error).__name__}.", got=str(error))
        got = replayed.logits_as(expected)
        if got is None:
            return Fault(
                "incomplete",
                "The run is not complete.",
                expected=f"the logits of {len(expected)} passes read back",
                got=f"{len(replayed.logits)}",
            )
        equal, largest = compare_logits(expected, got)
        if not equal:
            return Fault(
                "parity",
                "The logits differ from the resident run's.",
                expected=parity_line(0.0, "paged"),
                got=f"{parity_line(largest, 'paged')}, in the order {schedule!r}",
            )
    return None


def _passed(found: Sequence[Evidence]) -> str:
    ours, clocks = max(map(hit_rates, found))
    return f"paged vs resident max abs diff = 0, no hazard, within budget; hit rate {ours:.2f}, CLOCK's {clocks:.2f}."


GATE = ProgramJudge(
    (
        rules.given_inputs_only,
        *MOVES,
        *WAITS,
        really_brought,
        parity,
        nothing_beside_the_pool,
        keeps_what_clock_keeps,
    ),
    _passed,
    GATE_IDEAS,
    BLAME,
    MixtureCase.of,
    (*MOVES, *WAITS[:2], fetched_ahead),
)
