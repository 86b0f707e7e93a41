"""The rules by which Perfetto's trace processor reads a JSON trace, as far as they make it warn or drop something.

Events are read in order of time. Each thread has a stack of open slices; a slice that would outlast the one it begins
in is dropped. A flow binds to the slice on top of its thread's stack; it must have one, its id must be new at "s" and
known at "f".
"""

from __future__ import annotations

import json
from typing import Any

KNOWN = {"M", "X", "C", "s", "f"}


def problems(trace: dict[str, Any]) -> list[str]:
    """What Perfetto would warn of, drop or bind to something else than meant; empty for a sound trace."""
    found: list[str] = []
    events = json.loads(json.dumps(trace, allow_nan=False))["traceEvents"]
    named = {event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    if not {event["pid"] for event in events} <= processes or 1 not in processes:
        found.append("a process has no name")
    stacks: dict[int, list[tuple[int, int, str]]] = {}
    flows: dict[int, list[str]] = {}
    timed = [event for event in events if event["ph"] != "M"]
    if [event["ts"] for event in timed] != sorted(event["ts"] for event in timed):
        found.append("events are not in order of time")
    for event in timed:
        # Times are cut off, not rounded, when they become nanoseconds.
        at, phase = int(event["ts"] * 1000), event["ph"]
        if phase not in KNOWN or event["ts"] < 0:
            found.append(f"unknown or misplaced event {event}")
        if event["tid"] not in named:
            found.append(f"thread {event['tid']} has no name")
        stack = stacks.setdefault(event["tid"], [])
        if phase == "X":
            end = at + int(event["dur"] * 1000)
            while stack and stack[-1][1] <= at:
                stack.pop()
            if stack and end > stack[-1][1]:
                found.append(f"slice {event['name']!r} at {at} ns outlasts {stack[-1][2]!r}, in which it begins")
            stack.append((at, end, event["name"]))
        elif phase in ("s", "f"):
            if not stack or not stack[-1][0] <= at < stack[-1][1]:
                found.append(f"flow {event['id']} ({phase}) at {at} ns lies in no slice of thread {event['tid']}")
            if phase == "f" and event.get("bp") != "e":
                found.append(f"flow {event['id']} binds to the next slice, not to the one around it")
            flows.setdefault(event["id"], []).append(phase)
        elif phase == "C" and not all(isinstance(v, int | float) for v in event["args"].values()):
            found.append("a counter is no number")
    found += [f"flow {number} has {phases}" for number, phases in flows.items() if phases != ["s", "f"]]
    return found


def bound_slice(trace: dict[str, Any], flow: dict[str, Any]) -> dict[str, Any]:
    """The innermost slice that the end ``flow`` of a fence edge lies in."""
    at = int(flow["ts"] * 1000)
    around = [
        event
        for event in trace["traceEvents"]
        if event["ph"] == "X"
        and event["tid"] == flow["tid"]
        and int(event["ts"] * 1000) <= at < int(event["ts"] * 1000) + int(event["dur"] * 1000)
    ]
    return min(around, key=lambda event: event["dur"])
