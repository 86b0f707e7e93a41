"""Lab 6: what a plan has to keep, and how fast it has to be; and of a slow one, which decision was to blame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Allocate, Dispatch, Free, HostRead
from xinfer_lab.device.simulated import SimulatedDevice, simulate
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.model_case import run_model
from xinfer_lab.labs.lab6.judge.bounds import Best, bytes_used, fewest_streamed, pinned_used, time_of
from xinfer_lab.labs.lab6.judge.kept import Kept, decided, kept_by
from xinfer_lab.labs.lab6.judge.race_case import AskedCase, RaceCase, best_of
from xinfer_lab.labs.lab6.judge.uneven import bytes_held, paper_bound, paper_time
from xinfer_lab.labs.lab6.planned_case import pass_time
from xinfer_lab.residency.placeholder import PlaceholderLayers
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.scale import format_time

__all__ = ["RIGHT", "reaches", "score_of"]


def score_of(evidence: Evidence) -> float:
    """bound / time of a case, at most 1. Raises ValueError for an incomplete run."""
    case = evidence.case
    if isinstance(case, AskedCase) and case.is_uneven:
        kept = decided(evidence)
        return min(1.0, paper_bound(case.needs) / paper_time(case.needs, kept.places, kept.slots, kept.host))
    return min(1.0, best_of(case).bound / _time(evidence))


def _time(evidence: Evidence) -> float:
    """Seconds of a steady pass: on the virtual clock, or by the figures that the plan had."""
    if isinstance(evidence.case, AskedCase):
        kept = decided(evidence)
        times = time_of(evidence.case.needs, kept.form, kept.host, kept.streamed)
        # One slot is filled and read in turns.
        return sum(times.values()) if kept.slots == 1 else max(times.values())
    timeline = simulate(evidence.stream, evidence.case.gpu, KERNELS)
    return pass_time(timeline, evidence.stream, evidence.case.steps)


def _of_a_run(rule: rules.Rule) -> rules.Rule:
    """``rule`` for the cases that are run."""
    return lambda evidence: None if isinstance(evidence.case, AskedCase) else rule(evidence)


def plan_fits(evidence: Evidence) -> Fault | None:
    """Where nothing is run: a plan was decided on, and it fits the budget and the pinned memory."""
    if not isinstance(evidence.case, AskedCase):
        return None
    needs = evidence.case.needs
    try:
        kept = decided(evidence)
    except ValueError:
        return Fault("incomplete", "No plan was recorded for these needs.", show=False)
    if kept.form not in needs["forms"]:
        return Fault("incomplete", "The recording is not of what was asked.", show=False)
    if evidence.case.is_uneven:
        used = bytes_held(needs, kept.places, kept.slots)
    else:
        used = bytes_used(needs, kept.form, kept.streamed, kept.slots)
    if used > needs["budget"]:
        return Fault(
            "over-budget",
            "The plan takes more device memory than there is.",
            expected=f"at most {format_bytes(needs['budget'])}",
            got=f"{format_bytes(used)}: {kept}",
            show=False,
        )
    pinned = pinned_used(needs, kept.form, kept.host, kept.streamed)
    if not evidence.case.is_uneven and pinned > needs["pinned"]:
        return _pinned(needs["pinned"], pinned)
    return None


def complete(evidence: Evidence) -> Fault | None:
    """Every pass computes every layer, and its logits are read."""
    count = sum(isinstance(record, Dispatch) and record.kernel == "decoder_layer" for record in evidence.stream)
    reads = sum(isinstance(record, HostRead) for record in evidence.stream)
    if count == evidence.steps and reads >= evidence.case.steps:
        return None
    return Fault("incomplete", "The run is not complete.", expected=f"{evidence.steps} computed layers", got=f"{count}")


def within_pinned(evidence: Evidence) -> Fault | None:
    """While the passes run, layers occupy no more pinned memory than there is for them."""
    living: dict[str, int] = {}
    most = 0
    for index, record in enumerate(evidence.stream):
        if isinstance(record, Allocate) and record.heap == "upload":
            living[record.buffer] = record.size
        elif isinstance(record, Free):
            living.pop(record.buffer, None)
        if index >= evidence.first_pass:
            most = max(most, sum(living.values()))
    besides = _pinned_besides(evidence.case)
    if most <= evidence.case.pinned + besides:
        return None
    return _pinned(evidence.case.pinned, most - besides)


def _pinned(limit: int, used: int) -> Fault:
    return Fault(
        "pinned",
        "More host memory is pinned than there is.",
        expected=f"at most {format_bytes(limit)} of pinned memory for layers",
        got=format_bytes(used),
        hint='needs["pinned"] is the limit. A staging ring ("staged") takes needs["ring"] layers, a pinned copy all '
        "that stream.",
        show=False,
    )


@lru_cache(maxsize=64)
def _pinned_besides(case: RaceCase) -> int:
    """Bytes of upload heaps that the model itself has while it runs."""
    device = SimulatedDevice(case.gpu, memory=None, check=False)
    run_model(case, SizedWeights(case.config), device, PlaceholderLayers)
    living: dict[str, int] = {}
    running, most = False, 0
    for record in device.stream:
        if isinstance(record, Allocate) and record.heap == "upload":
            living[record.buffer] = record.size
        elif isinstance(record, Free):
            living.pop(record.buffer, None)
        running = running or (isinstance(record, Dispatch) and record.kernel == "embed")
        if running:
            most = max(most, sum(living.values()))
    return most


def reaches(share: float) -> rules.Rule:
    """The rule that a pass takes at most bound / ``share``. The fault's kind names the decision that is to blame."""

    def fast_enough(evidence: Evidence) -> Fault | None:
        asked = isinstance(evidence.case, AskedCase)
        if asked and evidence.case.is_uneven:
            return None
        best, time = best_of(evidence.case), _time(evidence)
        if best.bound / time >= share:
            return None
        kept = kept_by(evidence)
        return Fault(
            _blame(kept, best, evidence.case.needs),
            f"A pass takes longer than bound / {share:g}.",
            expected=f"at most {format_time(best.bound / share)}: a plan for this case can come to "
            f"{format_time(best.bound)}, where {_WHAT[best.binds]} binds",
            got=f"{format_time(time)} ({best.bound / time:.2f} of the bound): {kept}",
            records=(),
            show=not asked,
        )

    return fast_enough


_WHAT = {"computing": "computing", "link": "the link", "memcpy": "the host's copying"}


def _blame(kept: Kept, best: Best, needs: Mapping[str, object]) -> str:
    """The kind of the fault: the first decision that differs from the best plan's."""
    if kept.slots == 1:
        return "slow:one-slot"
    if kept.streamed > fewest_streamed(needs, kept.form):
        return "slow:slots" if kept.slots > 2 else "slow:stay"
    if kept.staged and best.host == "pinned" and kept.form == best.form:
        return "slow:tier"
    if kept.form != best.form:
        return f"slow:{kept.form}"
    return "slow:spread" if kept.uneven else "slow"


RIGHT = (
    plan_fits,
    *map(
        _of_a_run,
        (
            rules.given_inputs_only,
            complete,
            within_pinned,
            rules.no_hazard,
            rules.no_state_fault,
            rules.parity,
        ),
    ),
)
"""What every plan of a race has to keep."""
