"""Asks the same requests of the course's own pool, to compare an answer's notes with.

Notes are written in the process that runs the answer, so they are not believed without this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.records import HostWait, Signal, Transition
from xinfer_lab.device.stream import CommandStream, record_to_dict
from xinfer_lab.grading.programs.calls import Call, read_calls
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.mixture_case import MixtureCase, run_mixture
from xinfer_lab.labs.lab5.page_shape import PageShape
from xinfer_lab.labs.lab5.pages import PagesRead, pages_of, read_pages
from xinfer_lab.labs.lab5.parts import neighbours
from xinfer_lab.labs.lab5.script import PoolScript, play

__all__ = ["ExpectedRun", "expected_run", "nothing_beside_the_pool"]


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """A case run with the course's parts: its stream, its calls of the pool, and what they did."""

    stream: CommandStream
    calls: tuple[Call, ...]
    pages: PagesRead

    @property
    def acquired(self) -> Counter[tuple[str, int]]:
        """How often each page is acquired and released: the same whatever a pool keeps."""
        return _taken(self.pages)


@lru_cache(maxsize=32)
def expected_run(case: MixtureCase | PoolScript) -> ExpectedRun:
    """The run of ``case`` with the course's parts, computed here."""
    devices: list[_Noting] = []

    def open_device(**options: Any) -> Device:
        devices.append(_Noting(check=False, **options))
        return devices[-1]

    if isinstance(case, MixtureCase):
        run_mixture(case, neighbours(""), open_device)
    else:
        play(neighbours(""), case.inputs(), open_device)
    stream, calls = devices[0].stream, read_calls(devices[0].calls)
    return ExpectedRun(stream, calls, read_pages(stream, calls, case.shape))


class _Noting(EmulatedDevice):
    """Keeps the notes of `noted`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.calls: list[dict[str, Any]] = []


def _taken(pages: PagesRead) -> Counter[tuple[str, int]]:
    return Counter((call.name, call.page) for call in pages.calls if call.name in ("acquire", "release"))


def nothing_beside_the_pool(evidence: Evidence) -> Fault | None:
    """Calls follow one another; what was submitted between them, and which pages it uses, is what the program around
    the answer submits with any pool; and each page is acquired and released as often."""
    expected, shape = expected_run(evidence.case), evidence.case.shape
    bounds = [bound for call in evidence.calls for bound in (call.begin, call.end)]
    used, wanted = (
        [(use.queue, use.page, use.writes) for use in pages.uses] for pages in (pages_of(evidence), expected.pages)
    )
    if (
        bounds == sorted(bounds)
        and _beside(evidence.stream, evidence.calls, shape) == _beside(expected.stream, expected.calls, shape)
        and used == wanted
        and _taken(pages_of(evidence)) == expected.acquired
    ):
        return None
    return Fault(
        "incomplete",
        "The recording is not of what was asked.",
        expected="between calls of the pool, what the program around it submits, and nothing else; each call noted "
        "once, as it was made",
        got="other commands between them, or other calls",
        show=False,
    )


def _beside(stream: CommandStream, calls: Sequence[Call], shape: PageShape) -> list[Any]:
    """What was submitted outside of ``calls``, whichever frames it uses. States, and what the host waits for
    when all is over, depend on what was submitted within."""
    within = {index for call in calls for index in range(call.begin, min(call.end, len(stream)))}
    end = max((call.end for call in calls), default=0)
    return [
        _wherever(record_to_dict(record), shape)
        for index, record in enumerate(stream)
        if index not in within
        and not isinstance(record, Transition)
        and not (index >= end and isinstance(record, (HostWait, Signal)))
    ]


def _wherever(value: Any, shape: PageShape) -> Any:
    """``value`` without source lines, digests, numbers of calls, and places in the pool's frames."""
    if isinstance(value, dict):
        dropped = {"where", "digest", "call"} | ({"offset"} if value.get("buffer") == shape.pool else set())
        return {key: _wherever(part, shape) for key, part in value.items() if key not in dropped}
    return [_wherever(part, shape) for part in value] if isinstance(value, (list, tuple)) else value
