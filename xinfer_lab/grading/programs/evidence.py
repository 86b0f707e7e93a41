"""Collects what is known about a recorded run: all of it follows from the case and the stream, on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch

from xinfer_lab.device.checker import Findings, check_stream
from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.records import Dispatch, HostRead, HostWait, Record
from xinfer_lab.device.replay import replay
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.grading.envelope import Raised
from xinfer_lab.grading.programs.calls import Call
from xinfer_lab.grading.programs.model_case import ModelCase, ProgramCase
from xinfer_lab.grading.programs.provenance import Provenance, read_provenance
from xinfer_lab.qwen2.layout import layer_layout

__all__ = ["Evidence", "Fault", "Replayed", "reference_logits"]

_PACKAGE = Path(__file__).parents[3]
_SHOWN = re.compile(r"xinfer_lab/(?!grading/|labs/(?!\w+/given/))")
"""Source files of the package whose lines a report may quote: the machine, and of a lab what its notebook gives."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule. ``kind`` names the rule; ``records`` are the ones to look at, the most telling first (its line is
    shown).

    ``show`` says whether a picture of the schedule helps.
    """

    kind: str
    headline: str
    expected: str = ""
    got: str = ""
    records: tuple[int, ...] = ()
    hint: str = ""
    show: bool = True


@dataclass(frozen=True)
class Replayed:
    """What the trusted side saw when it replayed the stream: the bytes of each read of the logits, the peak of device
    memory, and every host read with its bytes, in order."""

    logits: tuple[torch.Tensor, ...]
    peak: int
    reads: tuple[tuple[HostRead, torch.Tensor], ...] = ()

    def logits_as(self, expected: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """The logits in the form of ``expected``; None if there are more or fewer of them, or of another size."""
        if [raw.numel() for raw in self.logits] != [want.nbytes for want in expected]:
            return None
        return [raw.view(want.dtype).reshape(want.shape) for raw, want in zip(self.logits, expected, strict=True)]


@dataclass(frozen=True)
class Evidence:
    """One case and the stream that was recorded for it.

    ``case`` is a `ModelCase` for a run of a model, and whatever the judge makes of a case's inputs for another program.
    ``raised`` is what the answer raised, or what was raised while it ran; ``lines`` are the texts of the student's
    source lines by the ``where`` of records, ``methods`` where the answer's functions begin, ``calls`` the calls of
    them that the program around the answer noted, ``sleeps`` how many records were there each time the host slept,
    and ``goes_on`` whether it was getting on when it ended or was stopped.
    They come from the student's side: they are shown, never believed.
    """

    case: Any
    stream: CommandStream
    raised: Raised | None = None
    lines: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    sleeps: tuple[int, ...] = ()
    goes_on: bool = False
    _replays: dict[str, Replayed] = field(default_factory=dict, init=False, repr=False, compare=False)
    _derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def findings(self) -> Findings:
        """Hazards and state faults."""
        return check_stream(self.stream, KERNELS)

    @cached_property
    def ordering(self) -> Ordering:
        """Happens-before."""
        return Ordering(self.stream)

    @cached_property
    def program(self) -> Provenance:
        """Uploads and computed layers."""
        return read_provenance(self.stream)

    def derive(self, work_out: Callable[[Evidence], T]) -> T:
        """``work_out(self)``, worked out the first time: what one lab's rules read from a run, and others never ask."""
        if work_out not in self._derived:
            self._derived[work_out] = work_out(self)
        found: T = self._derived[work_out]
        return found

    @cached_property
    def layer_bytes(self) -> int:
        """Bytes of a layer's weights, without padding."""
        return layer_layout(self.case.config).weight_nbytes

    @property
    def steps(self) -> int:
        """Layers to be computed, over all passes."""
        count: int = self.case.steps * self.case.layers
        return count

    @cached_property
    def first_pass(self) -> int:
        """The index of the first embed dispatch (0 if there is none): what comes before is loading."""
        for index, record in enumerate(self.stream):
            if isinstance(record, Dispatch) and record.kernel == "embed":
                return index
        return 0

    def is_read_back(self, index: int) -> bool:
        """Whether record ``index`` reads the result that the program around the answer waits for: nothing else excuses
        a wait of the host."""
        record = self.stream[index] if index < len(self.stream) else None
        return isinstance(record, HostRead) and record.src.buffer in self.case.read_backs

    @cached_property
    def read_backs(self) -> tuple[int, ...]:
        """The indices of such reads, in order: one for each pass that is over."""
        return tuple(index for index in range(len(self.stream)) if self.is_read_back(index))

    @property
    def last_read_back(self) -> int:
        """The index of the last of `read_backs`; the stream's length if there is none."""
        return self.read_backs[-1] if self.read_backs else len(self.stream)

    def host_waits(self) -> Iterator[int]:
        """The records, from the first pass to the last read-back, by which the host waits for anything else than a
        result that it reads next."""
        for index in range(self.first_pass, self.last_read_back):
            if isinstance(self.stream[index], HostWait) and not self.is_read_back(index + 1):
                yield index

    def replay(self, schedule: str = "timed") -> Replayed:
        """Run the stream on a device of one's own, under the case's budget, with one's own weights and in the order of
        ``schedule``, the first time; fresh memory is poisoned, but hazards are what `findings` says.

        Raises a `DeviceError` for what no device could do, `OutOfDeviceMemory` among them.
        """
        if schedule not in self._replays:
            self._replays[schedule] = self._replayed(schedule)
        return self._replays[schedule]

    def _replayed(self, schedule: str) -> Replayed:
        case: ProgramCase = self.case
        seen: list[tuple[HostRead, torch.Tensor]] = []
        device = EmulatedDevice(memory=case.memory, schedule=schedule, check=False, poison=True)
        device.sources.mount(case.weights())

        def keep(_: int, record: HostRead, raw: torch.Tensor) -> None:
            seen.append((record, raw))

        replay(self.stream, device, on_read=keep, compare_digests=False)
        logits = tuple(raw for record, raw in seen if record.src.buffer == "logits.out")
        return Replayed(logits, device.memory.use().peak, tuple(seen))

    def text_of(self, where: str) -> str:
        """The text of a source line: the student's as recorded, the package's from its own files.

        '' for a line of a part that is given to this piece: it is the answer to another one.
        """
        if where in self.lines:
            return self.lines[where]
        path, _, number = where.rpartition(":")
        file = (_PACKAGE / path).resolve()
        if not _SHOWN.match(path) or not file.is_relative_to(_PACKAGE / "xinfer_lab") or not number.isdigit():
            return ""
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return ""
        return lines[int(number) - 1].strip() if 0 < int(number) <= len(lines) else ""

    def line_of(self, *records: int) -> str | None:
        """The first of the student's own lines that issued one of ``records``, as ``"line 7: text"``."""
        for index in records:
            where = self.stream[index].where
            if where in self.lines:
                return f"{where.removeprefix('your ')}: {self.lines[where]}"
        return None

    def record(self, index: int) -> Record:
        """A record by its index."""
        return self.stream[index]


@lru_cache(maxsize=64)
def reference_logits(case: ModelCase) -> tuple[torch.Tensor, ...]:
    """The logits of a resident run of ``case`` on a device of one's own: what parity is measured against."""
    from xinfer_lab.residency.resident import ResidentLayers

    logits: list[torch.Tensor] = []
    with EmulatedDevice(check=False) as device:
        make: Callable[..., object] = lambda dev, w: ResidentLayers(  # noqa: E731
            dev, layer_layout(w.config), w.config.dtype, w.config.num_hidden_layers
        )
        model = case.model(case.weights(), device, make)
        model.begin(case.steps)
        logits += [model.forward(tokens) for tokens in case.feed()]
        model.close()
    return tuple(logits)
