"""The residencies of a benchmark: how each is opened on the card, and on a device of sizes for the prediction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xinfer_lab.bench.encoded_store import EncodedStore, StoredEncoded
from xinfer_lab.bench.measure import Workload
from xinfer_lab.bench.store import LayerStore, StoredLayers
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import (
    MIN_POOL,
    SourceFactory,
    planned_layers,
    resident_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.plan import GroupPlan, Plan, Shape, make_plan, plan_cards
from xinfer_lab.residency.tiers import HostOpener

__all__ = [
    "OWN",
    "RESIDENT",
    "Entry",
    "budget_plan",
    "compressed_entry",
    "own_entry",
    "pageable_entry",
    "planned_entry",
    "resident_entry",
    "serial_entry",
    "streaming_entry",
]

RESIDENT = "resident"
"""The row that all others are compared with."""

OWN = "my engine"
"""What the rows of a student's own engine begin with."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A residency by ``name``: ``real`` makes its layers on the card, ``sized`` on a device of sizes, for a workload.

    ``host_embedding``: whether the embedding stays on the host then. ``options`` are those of the CUDA device;
    ``hides``: whether it is about hiding uploads behind computing, which longer prefills show. ``arguments`` are
    further ones of the model, on the card and on sizes, ``note`` says what there is to say of it after its passes,
    ``on_demand`` that a pass fetches for itself alone, and ``cards`` over how many cards its layers go. All of these
    functions may raise `RequestError` where a workload does not fit.
    """

    name: str
    real: Callable[[Workload], SourceFactory]
    sized: Callable[[Workload], SourceFactory]
    host_embedding: Callable[[Workload], bool] = lambda workload: False
    options: Mapping[str, Any] = field(default_factory=dict)
    hides: bool = False
    arguments: Callable[[Workload], Mapping[str, Any]] = lambda workload: {}
    note: Callable[[QwenModel], str] | None = None
    on_demand: bool = False
    cards: int = 1


def resident_entry() -> Entry:
    """Everything in device memory: all others are compared with it."""
    return Entry(name=RESIDENT, real=lambda _: resident_layers(), sized=lambda _: resident_layers())


def serial_entry(store: LayerStore) -> Entry:
    """Upload, compute, upload, compute, out of pinned memory."""
    return Entry(name="serial, pinned", real=lambda _: _serial(store), sized=lambda _: serial_layers())


def pageable_entry(store: LayerStore) -> Entry:
    """The same out of ordinary memory: naive offloading. The store must no longer be pinned."""
    return Entry(
        name="serial, pageable",
        real=lambda _: _serial(store),
        sized=lambda _: serial_layers(),
        options={"pin": False},
    )


def _serial(store: LayerStore) -> SourceFactory:
    return serial_layers(_stored(store))


def _stored(store: LayerStore) -> HostOpener:
    return lambda card, layers: StoredLayers(card, store, layers)


def streaming_entry(store: LayerStore, pool: int, cards: int = 1) -> Entry:
    """Layers through ``pool`` slots, uploads beside computing; on each of ``cards`` cards."""
    return Entry(
        name=_over(f"streaming, {pool} slots", cards),
        real=lambda _: streaming_layers(pool, _stored(store)),
        sized=lambda _: streaming_layers(pool),
        hides=pool == 2,
        cards=cards,
    )


def own_entry(own: Callable[[int], SourceFactory], pool: int) -> Entry:
    """Layers through ``pool`` slots of a student's own engine: ``own`` makes them for a number of slots."""
    return Entry(name=f"{OWN}, {pool} slots", real=lambda _: own(pool), sized=lambda _: own(pool))


def _over(name: str, cards: int) -> str:
    return name if cards == 1 else f"{name}, {cards} cards"


def budget_plan(
    config: Qwen2Config,
    workload: Workload,
    budget: int,
    reserved: Mapping[str, int],
    host_embedding: bool | None = None,
) -> Plan:
    """The plan for ``workload`` within ``budget`` bytes, with the embedding where it says, or (None) where it is best.
    Raises `RequestError` if not even two slots fit."""
    shape = Shape(workload.context, chunk=workload.chunk)
    return make_plan(config, shape, budget, reserved=reserved, host_embedding=host_embedding)


def planned_entry(store: LayerStore, budget: int, reserved: Mapping[str, int], cards: int = 1) -> Entry:
    """What fits into ``budget`` bytes of each card stays, the rest streams. ``reserved``: what a card holds already."""

    @functools.cache
    def plan(workload: Workload) -> GroupPlan:
        shape = Shape(workload.context, chunk=workload.chunk)
        found = plan_cards(store.config, shape, budget, cards, reserved=[reserved] * cards)
        if not found.streamed:
            raise RequestError(f"everything fits into {format_bytes(budget)}")
        return found

    return Entry(
        name=_over(f"planned, {format_bytes(budget)}", cards),
        real=lambda workload: planned_layers(plan(workload), _stored(store)),
        sized=lambda workload: planned_layers(plan(workload)),
        host_embedding=lambda workload: plan(workload).host_embedding,
        options={"memory": budget},
        cards=cards,
    )


def compressed_entry(
    store: LayerStore, encoded: EncodedStore, budget: int | None, reserved: Mapping[str, int], cards: int = 1
) -> Entry:
    """Layers in their coded form, decoded as they are used: all of them through two slots, or (with ``budget``) as many
    of them kept as fit."""
    name = f"compressed {encoded.codec}, " + ("2 slots" if budget is None else format_bytes(budget))

    @functools.cache
    def plan(workload: Workload) -> Plan | GroupPlan:
        layers = store.config.num_hidden_layers
        sizes = tuple(layer.nbytes for layer in encoded.layers)
        if budget is None:
            return Plan(layers, tuple(range(layers)), MIN_POOL, 0, {}, None, encoded.codec, sizes)
        shape = Shape(workload.context, chunk=workload.chunk)
        return plan_cards(
            store.config, shape, budget, cards, reserved=[reserved] * cards, compress=encoded.codec, encoded=encoded
        )

    def stored(card: Device, layers: Sequence[int]) -> StoredEncoded:
        return StoredEncoded(card, layers)

    return Entry(
        name=_over(name, cards),
        real=lambda workload: planned_layers(plan(workload), stored, encoded=encoded),
        sized=lambda workload: planned_layers(plan(workload), encoded=encoded),
        host_embedding=lambda workload: plan(workload).host_embedding,
        options={} if budget is None else {"memory": budget},
        cards=cards,
    )
