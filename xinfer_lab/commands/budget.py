"""What a command says when a device memory budget is too small: also the least that would work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from xinfer_lab.commands.faults import CommandError
from xinfer_lab.device.errors import OutOfDeviceMemory, format_bytes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.factories import MIN_POOL, effective_pool
from xinfer_lab.residency.plan import Shape, make_plan

__all__ = ["explained", "least_memory"]


def least_memory(config: Qwen2Config, *, context: int, chunk: int, pool: int | None) -> int:
    """Bytes of device memory that are enough for any run of this shape with ``pool`` slots; with all layers there if
    ``pool`` is None. A run that does not fill its context may need a little less."""
    plan = make_plan(config, Shape(context, chunk=chunk), None)
    slots = None if pool is None else effective_pool(pool, plan.layers)
    return sum(plan.always.values()) + (plan.layers if slots is None else slots) * plan.layer_bytes


@contextmanager
def explained(config: Qwen2Config, memory: int | None, *, context: int, chunk: int, pool: int | None) -> Iterator[None]:
    """Within it, a device that ran out of its budget of ``memory`` bytes raises `CommandError`: what did not fit, and
    the least that would work, as asked and with as few slots as possible. Without a budget nothing is changed.
    """
    try:
        yield
    except OutOfDeviceMemory as error:
        if memory is None:
            raise
        # The name of a buffer, which nobody who reads this has seen.
        said = re.sub(r"\bresident\b", "embedding, norm, head", str(error).partition(" Held by: ")[0])
        needed, least = (least_memory(config, context=context, chunk=chunk, pool=n) for n in (pool, MIN_POOL))
        asked = "with all layers resident" if pool is None else f"with --stream-layers {pool}"
        words = f"{format_bytes(needed)} ({needed:,} bytes) {asked}"
        if least < needed:
            words += f", {format_bytes(least)} ({least:,} bytes) with --stream-layers {MIN_POOL}, the fewest slots"
        raise CommandError(f"{said} Enough for this run: {words}") from None
