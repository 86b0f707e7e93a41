"""A trial of a page pool's parts: what a few requests make the three queues do, drawn on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.labs.lab5.script import PAGE, PoolScript, play
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.timeline_svg import timeline_svg

__all__ = ["A_PAGE_A_MILLISECOND", "PAGE", "PartsTrial", "try_parts"]

A_PAGE_A_MILLISECOND = PoolScript(1, 1, (), 0).spec()
"""A GPU on which a page crosses the link in a millisecond, each way, and is read in half of one."""


@dataclass(frozen=True, slots=True)
class PartsTrial:
    """``hazards``: how many the checker found; ``seconds`` that the requests took on the virtual clock, where a page
    crosses the link in a millisecond and is used in half of one; ``picture``: the queues over time."""

    hazards: int
    seconds: float
    picture: Picture

    def __str__(self) -> str:
        return f"{self.hazards} hazards, {self.seconds * 1e3:.1f} ms"


def try_parts(
    parts: Mapping[str, Any], requests: Sequence[str], *, frames: int, pages: int, title: str = "What the queues do"
) -> PartsTrial:
    """Ask a pool of ``frames`` frames and ``pages`` pages made of ``parts`` for ``requests``, such as "prefetch 3".

    The verbs are prefetch, acquire, write (acquire to write), put (the direct queue writes), use (it reads), release
    and evict. Blocks until all is done. Raises whatever a part raises.
    """
    ops = tuple((verb, int(page)) for verb, _, page in (request.partition(" ") for request in requests))
    script = PoolScript(frames, pages, ops, seed=1)
    devices: list[EmulatedDevice] = []

    def open_device(**options: Any) -> Device:
        devices.append(EmulatedDevice(spec=script.spec(), **options))
        return devices[-1]

    play(parts, script.inputs(), open_device)
    (device,) = devices
    timeline = device.timeline()
    begin = min((event.start for event in timeline.events if event.label.startswith("bring")), default=0.0)
    asked = [event.end for event in timeline.events if event.label.split(" ")[0] in ("bring", "use", "write", "save")]
    end = max(asked, default=timeline.duration)
    picture = timeline_svg(timeline, title=title, hazards=device.hazards[:1], start=begin, end=end)
    return PartsTrial(len(device.hazards), end - begin, picture)
