"""Explains a device memory budget that is too small, and names the least that would work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from xinfer_lab.cli.devices import check_cards
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import OutOfDeviceMemory, format_bytes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.cache import CacheFactory, contiguous_cache
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL, effective_pool
from xinfer_lab.residency.plan import GroupPlan, Shape, plan_cards

__all__ = ["explained", "fitting_plan", "least_memory"]


def least_memory(
    config: Qwen2Config,
    *,
    context: int,
    chunk: int,
    pool: int | None,
    make_cache: CacheFactory = contiguous_cache,
    cards: int = 1,
) -> int:
    """Bytes of device memory, of each of ``cards`` cards, that are enough for any run of this shape with ``pool``
    slots; with all layers there if ``pool`` is None. A run that does not fill its context may need a little less."""
    found = plan_cards(config, Shape(context, chunk=chunk, make_cache=make_cache), None, cards)
    slots = [None if pool is None else effective_pool(pool, plan.layers) for plan in found.cards]
    return max(
        sum(plan.always.values()) + (plan.layers if fits is None else fits) * plan.layer_bytes
        for plan, fits in zip(found.cards, slots, strict=True)
    )


@contextmanager
def explained(
    config: Qwen2Config, memory: int | None, *, context: int, chunk: int, pool: int | None, cards: int = 1
) -> Iterator[None]:
    """Within it, a device that ran out of its budget of ``memory`` bytes a card raises `CommandError`: what did not
    fit, and the least that would work, as asked and with as few slots as possible. Without a budget nothing is changed.
    """
    try:
        yield
    except OutOfDeviceMemory as error:
        if memory is None:
            raise
        # The name of a buffer, which nobody who reads this has seen.
        said = re.sub(r"\bresident\b", "embedding, norm, head", str(error).partition(" Held by: ")[0])
        said = re.sub(r"\boutside\.(embedding|head)(@\d+)?", r"\1", said)
        raise CommandError(f"{said} {_enough(config, context=context, chunk=chunk, pool=pool, cards=cards)}") from None


def _enough(
    config: Qwen2Config,
    *,
    context: int,
    chunk: int,
    pool: int | None,
    make_cache: CacheFactory = contiguous_cache,
    cards: int = 1,
) -> str:
    needed, least = (
        least_memory(config, context=context, chunk=chunk, pool=n, make_cache=make_cache, cards=cards)
        for n in (pool, MIN_POOL)
    )
    asked = "with all layers resident" if pool is None else f"with --stream-layers {pool}"
    words = f"{format_bytes(needed)} ({needed:,} bytes) {asked}"
    if least < needed:
        words += f", {format_bytes(least)} ({least:,} bytes) with --stream-layers {MIN_POOL}, the fewest slots"
    return f"Enough for this run{' on each card' if cards > 1 else ''}: {words}"


def fitting_plan(
    config: Qwen2Config, device: Device, *, context: int, chunk: int, make_cache: CacheFactory = contiguous_cache
) -> GroupPlan:
    """What stays and what streams within the budget of each card of ``device``. Raises `CommandError`, which says what
    would be enough, if not even two slots fit.
    """
    uses, cards = [memory.use() for memory in device.memories], len(device.memories)
    check_cards(cards, config.num_hidden_layers)
    try:
        shape = Shape(context, chunk=chunk, make_cache=make_cache)
        return plan_cards(config, shape, uses[0].budget, cards, reserved=[use.holders for use in uses])
    except RequestError:
        budget = format_bytes(uses[0].budget or 0)
        enough = _enough(config, context=context, chunk=chunk, pool=None, make_cache=make_cache, cards=cards)
        raise CommandError(f"a budget of {budget} of device memory is not enough. {enough}") from None
