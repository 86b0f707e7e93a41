"""The clinic's chart: what a streamer does on an emulated device, its findings, and a picture of its fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from random import Random

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.hazard import Hazard
from xinfer_lab.device.records import Allocate, Transition
from xinfer_lab.device.state_log import StateEntry, state_log
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.grading.programs.evidence import reference_logits
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.grading.programs.record_program import portable_place
from xinfer_lab.grading.programs.run_rules import telling_hazard
from xinfer_lab.grading.report import folded
from xinfer_lab.labs.lab4.given.stepped import RunStep, SteppedModel, step_ring
from xinfer_lab.residency.parity import compare_logits, parity_line
from xinfer_lab.views.order_strip import order_strip
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slot_map import slot_map
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.state_strip import state_strip
from xinfer_lab.views.timeline_svg import timeline_svg

__all__ = ["Chart", "admit"]

_LEFT = "text-align:left"
_PRE = "white-space:pre;overflow-x:auto;margin:0;font-size:var(--jp-code-font-size,13px)"

SCHEDULES = ("timed", "copies_first", "copies_last")
"""Three of the orders that a GPU may choose."""

_WRAP = 78


@dataclass(frozen=True, slots=True)
class Chart:
    """A patient's chart: ``runs`` (schedule and parity line of each), ``hazards`` and ``state_faults`` (how many), the
    ``report`` of the
    finding that tells most ('' if there is none) and a ``picture``; ``stream`` is what it asked of the device,
    ``times`` when that happened, ``orders`` the order in which its queues' records were done under each schedule, and
    ``races`` the hazards."""

    patient: str
    runs: tuple[tuple[str, str], ...]
    hazards: int
    state_faults: int
    report: str
    picture: Picture
    stream: CommandStream = field(repr=False)
    times: Timeline = field(repr=False)
    orders: Mapping[str, tuple[int, ...]] = field(repr=False)
    races: tuple[Hazard, ...] = field(repr=False)

    @property
    def barriers(self) -> int:
        """Barriers of slot buffers that its command lists recorded."""
        return sum(isinstance(record, Transition) and record.buffer.startswith("slot[") for record in self.stream)

    def log(self, buffer: str) -> tuple[StateEntry, ...]:
        """The states of ``buffer``, step by step (see `state_log`)."""
        return state_log(self.stream, buffer, KERNELS)

    def timeline(self) -> Picture:
        """The whole run on the virtual clock."""
        return timeline_svg(self.times, title=f"{self.patient}: the whole run", slot_of=slots_of(self.stream))

    def order(self, schedule: str) -> Picture:
        """What the queues did under ``schedule``, in that order; what came too early is marked. Raises KeyError for a
        schedule under which it was not run."""
        return order_strip(
            self.times.events,
            self.orders[schedule],
            title=f"{self.patient}: the order under {schedule}",
            slot_of=slots_of(self.stream),
            hazards=self.races,
        )

    def _counts(self) -> str:
        return f"{self.hazards} hazards, {self.state_faults} state faults, {self.barriers} barriers"

    def __str__(self) -> str:
        lines = [f"{self.patient}: {self._counts()}"]
        lines += [f"  {schedule:<13} {line}" for schedule, line in self.runs]
        return "\n".join([*lines, "", self.report or "No finding.", "", self.picture.alt])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="{_LEFT}">{escape(schedule)}</th><td style="{_LEFT}">{escape(line)}</td></tr>'
            for schedule, line in self.runs
        )
        head = f"<strong>{escape(self.patient)}</strong>: {self._counts()}"
        report = f'<pre tabindex="0" style="{_PRE}">{escape(folded(self.report, _WRAP) or "No finding.")}</pre>'
        return f"<p>{head}</p><table>{rows}</table>{report}{self.picture.html()}"


def admit(
    patient: RunStep,
    *,
    layers: int = 5,
    pool: int = 2,
    passes: int = 2,
    spare: int = 0,
    computing: float = 1.0,
    schedules: Sequence[str] = SCHEDULES,
) -> Chart:
    """Stream a small model by ``patient`` and write its chart.

    A model of ``layers`` layers is run for ``passes`` passes through ``pool`` slots, with ``spare`` slots more;
    computing a layer takes ``computing`` times its transfer. It is run once under each of ``schedules`` (see
    `open_schedule`); findings and picture are those of the first. Blocks for a fraction of a second.
    Raises whatever ``patient`` raises.
    """
    case = ModelCase.draw(Random(4), layers=layers, pool=pool, steps=passes, slots=pool + spare, dtype="float32")
    name = getattr(patient, "__name__", "patient")
    devices = [_run(patient, case, schedule, spare, computing) for schedule in schedules]
    device = devices[0][0]
    runs = tuple((schedule, line) for schedule, (_, line) in zip(schedules, devices, strict=True))
    report = ""
    if device.hazards:
        report = telling_hazard(device.hazards).report()
    elif device.state_faults:
        report = device.state_faults[0].report()
    cells: dict[str, int] = {}
    for where in dict.fromkeys(record.where for record in device.stream if record.where in report):
        report = report.replace(where, portable_place(where, cells))
    return Chart(
        name,
        runs,
        len(device.hazards),
        len(device.state_faults),
        report,
        _picture(name, device),
        device.stream,
        device.timeline(),
        {schedule: run.order for schedule, (run, _) in zip(schedules, devices, strict=True)},
        tuple(device.hazards),
    )


def _run(patient: RunStep, case: ModelCase, schedule: str, spare: int, computing: float) -> tuple[EmulatedDevice, str]:
    weights, logits = case.weights(), []
    device = EmulatedDevice(memory=case.memory, schedule=schedule, spec=case.spec(computing))
    with device:
        source = step_ring(patient, case.pool, spare=spare)
        model = SteppedModel(weights, device, source, batch=case.batch, context=case.context, chunk=case.prompt)
        model.begin(case.steps)
        logits += [model.forward(tokens) for tokens in case.feed()]
        model.close()
    return device, parity_line(compare_logits(reference_logits(case), logits)[1])


def _picture(name: str, device: EmulatedDevice) -> Picture:
    stream = device.stream
    if device.hazards:
        timeline = device.timeline()
        hazards = [telling_hazard(device.hazards)]
        starts = [event.start for event in timeline.events if "layer" in event.label]
        begin = min(starts, default=0.0)
        end = min(timeline.duration, begin + 12e-3)
        return timeline_svg(
            timeline,
            title=f"{name}: where it goes wrong",
            hazards=hazards,
            slot_of=slots_of(stream),
            start=begin,
            end=end,
        )
    if device.state_faults or any(isinstance(record, Transition) for record in stream):
        buffer = device.state_faults[0].buffer if device.state_faults else _last_slot(device)
        log = state_log(stream, buffer, KERNELS)
        return state_strip(log[:7], title=f"{name}: the states of {buffer}")
    return slot_map(stream, title=f"{name}: which layer is in which slot")


def _last_slot(device: EmulatedDevice) -> str:
    """A buffer of the slot that was made last: the spare one."""
    return [r.buffer for r in device.stream if isinstance(r, Allocate) and r.buffer.startswith("slot[")][-2]
