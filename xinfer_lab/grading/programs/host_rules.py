"""What can be asked of the host: that it submits and goes on, and waits for nothing but the results that it reads.

One definition for all labs: a wait is excused by a read of the results of the program around the answer
(`Evidence.host_waits`), and sleeping is waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xinfer_lab.device.records import HostWait
from xinfer_lab.grading.programs.evidence import Evidence, Fault

__all__ = ["awaited", "host_never_blocks", "host_never_sleeps", "host_waits_for_readers_only"]


def host_never_blocks(evidence: Evidence) -> Fault | None:
    """While the passes run, the host waits for nothing but the logits: waiting for layers is the queues' business."""
    return _host_blocks(evidence, lambda fence: False)


def host_waits_for_readers_only(evidence: Evidence) -> Fault | None:
    """As `host_never_blocks`, but the host may wait until a layer has been computed: to give its memory back."""
    fault = _host_blocks(evidence, lambda fence: fence.startswith("consumed."))
    return fault and replace(
        fault,
        headline="The host waits for more than a reader.",
        expected="a wait of the host for consumed, before it gives memory back, and for nothing else",
        hint="ring.consumed.wait(step + 1): this step's layer has been computed then.",
    )


def awaited(wait: HostWait) -> str:
    """What the host waits for, in a few words."""
    return "the whole device" if wait.fence.startswith("idle") else f"{wait.fence} >= {wait.value}"


def host_never_sleeps(evidence: Evidence) -> Fault | None:
    """The host does not sleep while the passes run: that is a wait that names nothing."""
    for index in evidence.sleeps:
        if evidence.first_pass < index <= evidence.last_read_back:
            return Fault(
                "host-sleeps",
                "The host sleeps while the passes run.",
                expected="the host submits and goes on; queues wait for fences",
                got="time.sleep, or another wait for what is no fence",
                records=(index - 1,),
                hint="Sleeping is waiting, and orders nothing: let a queue wait, queue.wait(fence, value).",
                show=False,
            )
    return None


def _host_blocks(evidence: Evidence, also: Callable[[str], bool]) -> Fault | None:
    for index in evidence.host_waits():
        record = evidence.stream[index]
        if isinstance(record, HostWait) and not also(record.fence):
            return Fault(
                "host-blocks",
                "The host blocks while the passes run.",
                expected="the host submits and goes on; queues wait for fences",
                got=f"the host waits for {awaited(record)}",
                records=(index,),
                hint="Let a queue wait instead of the host: queue.wait(fence, value).",
            )
    return host_never_sleeps(evidence)
