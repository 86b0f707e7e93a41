"""Where the time of each forward pass goes: computing, copying, waiting, and the bound that no schedule beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.records import HOST, Copy
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline

__all__ = ["PassTimes", "mean_pass", "pass_times"]


@dataclass(frozen=True)
class PassTimes:
    """One pass, in seconds: its ``time``; how long the direct queue computed (``compute``) and waited for fences
    (``stalled``), and the copy queue copied (``upload``) meanwhile; and ``bound``, max(compute, bytes moved / link).

    Of several cards ``compute`` is their sum, since they compute in turn; ``stalled`` is when none does; ``upload`` and
    the bytes moved are those of the busiest link.
    """

    time: float
    compute: float
    upload: float
    stalled: float
    bound: float


def pass_times(timeline: Timeline, stream: CommandStream, ends: Sequence[int], link: float) -> list[PassTimes]:
    """The passes of ``timeline``; pass p's records end before number ``ends[p]``, and the host has its result by then.

    ``stream`` is what was timed, ``link`` bytes/s. Uploads for a pass may go out during the one before: they count
    where they happen.
    """
    passes, start = [], 0.0
    for last in ends:
        end = max((e.end for e in timeline.events if e.lane == HOST and e.record < last), default=start)
        directs, copies = _lanes(timeline, "direct"), _lanes(timeline, "copy")
        compute = sum(_within(timeline, lane, "dispatch", start, end) for lane in directs)
        waited = _within(timeline, "direct", "wait", start, end) if len(directs) == 1 else end - start - compute
        moved = max(_moved(timeline, lane, stream, start, end) for lane in copies)
        passes.append(
            PassTimes(
                time=end - start,
                compute=compute,
                upload=max(_within(timeline, lane, "copy", start, end) for lane in copies),
                stalled=waited,
                bound=max(compute, moved / link),
            )
        )
        start = end
    return passes


def _lanes(timeline: Timeline, kind: str) -> list[str]:
    """The queues of this kind, one on each card."""
    return [lane for lane in timeline.lanes if lane == on_node(kind, node_of(lane))]


def _within(timeline: Timeline, lane: str, kind: str, start: float, end: float) -> float:
    events = (event for event in timeline.events if event.lane == lane and event.kind == kind)
    return sum(max(0.0, min(event.end, end) - max(event.start, start)) for event in events)


def _moved(timeline: Timeline, lane: str, stream: CommandStream, start: float, end: float) -> float:
    """Bytes that the copy queue ``lane`` moves from ``start`` to ``end``; of a copy that is cut, its share."""
    total = 0.0
    for event in timeline.events:
        record = stream[event.record]
        if event.lane == lane and isinstance(record, Copy) and event.duration > 0:
            inside = max(0.0, min(event.end, end) - max(event.start, start))
            total += record.dst.size * inside / event.duration
    return total


def mean_pass(passes: Sequence[PassTimes]) -> PassTimes:
    """The mean of ``passes``, of which there is at least one."""
    count = len(passes)
    return PassTimes(
        time=sum(one.time for one in passes) / count,
        compute=sum(one.compute for one in passes) / count,
        upload=sum(one.upload for one in passes) / count,
        stalled=sum(one.stalled for one in passes) / count,
        bound=sum(one.bound for one in passes) / count,
    )
