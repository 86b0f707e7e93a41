"""The parts of a streaming ring that stand beside the one that is asked for. Not importable while an answer is recorded.

Each is handed out without the names of this module, so that nothing else can be reached from it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

__all__ = ["neighbours"]

Part = Callable[..., Any]


def _layer_of(step, layers):  # type: ignore[no-untyped-def]
    return step % layers


def _slot_of(step, layers, pool):  # type: ignore[no-untyped-def]
    return step % pool


def _wait_until_read(ring, step):  # type: ignore[no-untyped-def]
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)


def _prefetch(ring):  # type: ignore[no-untyped-def]
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1


def _ensure(ring, layer):  # type: ignore[no-untyped-def]
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)


def _release(ring, layer):  # type: ignore[no-untyped-def]
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()


_PARTS = {
    "layer_of": _layer_of,
    "slot_of": _slot_of,
    "wait_until_read": _wait_until_read,
    "prefetch": _prefetch,
    "ensure": _ensure,
    "release": _release,
}


def neighbours(besides: str) -> Mapping[str, Part]:
    """All parts by name but the one called ``besides``, each on its own."""
    bare = {"__builtins__": builtins}
    return {
        name: FunctionType(part.__code__, bare, name) for name, part in _PARTS.items() if name != besides
    }
