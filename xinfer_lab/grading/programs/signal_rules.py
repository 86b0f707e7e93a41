"""What can be asked of the fence by which the direct queue says how many layers have been computed."""

from __future__ import annotations

from xinfer_lab.device.records import Signal
from xinfer_lab.grading.programs.evidence import Evidence, Fault

__all__ = ["signals_each_step"]


def signals_each_step(evidence: Evidence) -> Fault | None:
    """`consumed` is signalled with v only behind the v-th layer's computing: reaching v says that v are done."""
    computes, begun = evidence.program.computes, evidence.case.begun * evidence.case.layers
    for index, record in enumerate(evidence.stream):
        if not isinstance(record, Signal) or not record.fence.startswith("consumed"):
            continue
        done = begun + sum(compute.record < index and compute.queue == record.queue for compute in computes)
        if record.value > done:
            return Fault(
                "promised-too-early",
                f"{record.fence} reaches {record.value} too early.",
                expected=f"{record.fence} = v behind the computing of v layers in all",
                got=f"the {record.queue} queue signals {record.fence} = {record.value} behind the computing of {done}",
                records=(index,),
                hint="Signal in release, with the number of layers computed so far.",
            )
    signalled = {r.value for r in evidence.stream if isinstance(r, Signal) and r.fence.startswith("consumed")}
    missing = [value for value in range(begun + 1, begun + len(computes) + 1) if value not in signalled]
    if missing:
        return Fault(
            "never-signalled",
            f"consumed is never signalled with {missing[0]}.",
            expected="consumed signalled with v behind the v-th layer's computing, for every v",
            got=f"{len(signalled)} values signalled for {len(computes)} layers computed",
            records=(computes[missing[0] - begun - 1].record,),
            hint="Another fence may do for you, but whoever else waits for this slot looks at consumed.",
            show=False,
        )
    return None
