"""How a model gets its layers: one factory a residency, for `QwenModel`. They work on sizes alone just as well.

Each imports its residency when it makes it: a lab that asks for one runs where that module cannot be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from xinfer_lab.device.device import Device
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.group import over_cards
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import ModelWeights

if TYPE_CHECKING:
    from xinfer_lab.residency.codec.encoded import EncodedWeights
    from xinfer_lab.residency.host import HostLayers
    from xinfer_lab.residency.tiers import HostOpener

__all__ = [
    "MIN_POOL",
    "OnTier",
    "Progress",
    "SourceFactory",
    "compressed_layers",
    "effective_pool",
    "paged_layers",
    "planned_layers",
    "resident_layers",
    "serial_layers",
    "streaming_layers",
]

MIN_POOL = 2
"""A pool of one slot cannot overlap anything: the only slot is being read whenever it could be filled."""

Progress = Callable[[int], None]
"""Called with a layer's number once the host has read that layer."""

OnTier = Callable[[str], None]
"""Called with a sentence that says which host memory ``auto`` chose, and why."""


class PlanLike(Protocol):
    """What a plan says about layers."""

    @property
    def layers(self) -> int: ...

    @property
    def streamed(self) -> tuple[int, ...]: ...

    @property
    def slots(self) -> int: ...

    @property
    def compress(self) -> str: ...


SourceFactory = Callable[[Device, ModelWeights], LayerSource]
"""Makes the layer source of a model; called after everything resident has been allocated."""


def effective_pool(pool: int, layers: int) -> int | None:
    """The slots that a pool of ``pool`` really gets: at least 2; None (everything resident) if it covers all layers.

    Raises `RequestError` for less than 1.
    """
    if pool < 1:
        raise RequestError(
            f"streaming takes at least {MIN_POOL} slots, not {pool}; choose --stream-layers {MIN_POOL} or more"
        )
    slots = max(MIN_POOL, pool)
    return slots if slots < layers else None


def resident_layers(on_layer: Progress | None = None) -> SourceFactory:
    """All layers stay in device memory; those of a model with experts without these."""
    from xinfer_lab.residency.resident import ResidentLayers

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config

        def share(card: Device, layers: Sequence[int]) -> LayerSource:
            layouts = [layer_layout(config, layer) for layer in layers]
            return ResidentLayers(card, layouts, config.dtype, layers, on_layer)

        return over_cards(device, config.num_hidden_layers, share)

    return make


def streaming_layers(
    pool: int,
    host_memory: str | HostOpener = "pinned",
    on_layer: Progress | None = None,
    *,
    on_tier: OnTier | None = None,
) -> SourceFactory:
    """Layers stream through ``pool`` slots, as `effective_pool` has it."""
    from xinfer_lab.residency.host import StagedLayers
    from xinfer_lab.residency.relay import relay_of
    from xinfer_lab.residency.resident import ResidentLayers
    from xinfer_lab.residency.streaming import StreamingLayers
    from xinfer_lab.residency.tiers import open_host

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config

        def share(card: Device, layers: Sequence[int]) -> LayerSource:
            slots = effective_pool(pool, len(layers))
            if slots is None:
                return ResidentLayers(card, [layer_layout(config, n) for n in layers], config.dtype, layers, on_layer)
            # With less room the host, waiting for it, would hold up layers that could be computed beside the upload.
            depth = max(2, slots - 1)
            host = open_host(host_memory, card, weights, layers, depth=depth, on_layer=on_layer, on_tier=on_tier)
            layout = layer_layout(config)
            # What is staged may be written again once this card's own copy is done.
            stays = not isinstance(host, StagedLayers)
            relay = relay_of(card, layers, config.num_hidden_layers, layout.nbytes) if stays else None
            return StreamingLayers(card, layout, config.dtype, host, len(layers), slots, layers, relay)

        return over_cards(device, config.num_hidden_layers, share)

    return make


def serial_layers(
    host_memory: str | HostOpener = "pinned", on_layer: Progress | None = None, *, on_tier: OnTier | None = None
) -> SourceFactory:
    """Each layer is uploaded when it is needed and not before."""
    from xinfer_lab.residency.serial import SerialLayers
    from xinfer_lab.residency.tiers import open_host

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config

        def share(card: Device, layers: Sequence[int]) -> LayerSource:
            host = open_host(host_memory, card, weights, layers, on_layer=on_layer, on_tier=on_tier)
            return SerialLayers(card, layer_layout(config), config.dtype, host, len(layers), layers)

        return over_cards(device, config.num_hidden_layers, share)

    return make


def paged_layers(
    size: int,
    policy: str = "clock",
    page_bytes: int = PAGE_BYTES,
    on_layer: Progress | None = None,
    *,
    ahead: int = 1,
) -> SourceFactory:
    """Layers in a page pool of ``size`` bytes of device memory, beside a pinned copy of all of them.

    ``policy``: a name of `xinfer_lab.paging.policy.open_policy`. Raises `RequestError` where two layers do not fit.
    """
    from xinfer_lab.paging.pool import HybridMemoryPool
    from xinfer_lab.residency.paged import PagedLayers, frames_for, layer_pages

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config
        layout, layers = layer_layout(config), config.num_hidden_layers
        frames = frames_for(layout, size, page_bytes)
        pages = layers * layer_pages(layout, page_bytes)
        pool = HybridMemoryPool(
            device, frames=min(frames, pages), pages=pages, page_bytes=page_bytes, policy=policy,
            name=device.fresh_name("pool"),
        )  # fmt: skip
        return PagedLayers(pool, layout, config.dtype, layers, ahead=ahead, on_layer=on_layer)

    return make


def planned_layers(
    plan: PlanLike,
    host_memory: str | HostOpener = "pinned",
    on_layer: Progress | None = None,
    encoded: EncodedWeights | None = None,
    *,
    on_tier: OnTier | None = None,
) -> SourceFactory:
    """The layers that ``plan`` streams pass through its slots, all others stay.

    Where it compresses, ``encoded`` holds the coded layers; without it there are only sizes, enough for a simulation.
    """
    if plan.compress != "none":
        return _planned_compressed(plan, host_memory, on_layer, encoded)
    from xinfer_lab.residency.planned import PlannedLayers
    from xinfer_lab.residency.resident import ResidentLayers
    from xinfer_lab.residency.tiers import open_host

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config

        def share(card: Device, layers: Sequence[int]) -> LayerSource:
            streamed = [place for place, layer in enumerate(layers) if layer in plan.streamed]
            if not streamed:
                return ResidentLayers(card, [layer_layout(config, n) for n in layers], config.dtype, layers, on_layer)
            called = [layers[place] for place in streamed]
            host = open_host(host_memory, card, weights, called, on_layer=on_layer, on_tier=on_tier)
            layout = layer_layout(config)
            return PlannedLayers(card, layout, config.dtype, host, len(layers), streamed, plan.slots, layers)

        return over_cards(device, plan.layers, share)

    return make


def _planned_compressed(
    plan: PlanLike, host_memory: str | HostOpener, on_layer: Progress | None, encoded: EncodedWeights | None
) -> SourceFactory:
    from xinfer_lab.residency.codec.encoded import SizedEncoding

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        coded = SizedEncoding(weights.config, plan.compress) if encoded is None else encoded
        if coded.codec != plan.compress:
            raise ValueError(f"the plan is for {plan.compress} codes, and these are {coded.codec} ones")
        return compressed_layers(coded, plan.streamed, plan.slots, host_memory, on_layer)(device, weights)

    return make


def compressed_layers(
    encoded: EncodedWeights,
    streamed: Sequence[int],
    pool: int = MIN_POOL,
    host_memory: str | HostOpener = "pinned",
    on_layer: Progress | None = None,
) -> SourceFactory:
    """All layers in their coded form: ``streamed`` of them pass through ``pool`` slots, the others stay."""
    from xinfer_lab.residency.codec.encoded import codec_width
    from xinfer_lab.residency.compressed import CompressedLayers
    from xinfer_lab.residency.relay import relay_of

    def make(device: Device, weights: ModelWeights) -> LayerSource:
        config = weights.config
        codec_width(encoded.codec, config.dtype)

        def share(card: Device, layers: Sequence[int]) -> LayerSource:
            places = [place for place, layer in enumerate(layers) if layer in streamed]
            called = [layers[place] for place in places]
            host = _encoded_host(card, encoded, called, pool, host_memory, on_layer) if called else None
            relay = None
            if len(streamed) == len(encoded.layers) and host_memory != "staged":
                largest = max(encoded.layers[layer].nbytes for layer in called)
                relay = relay_of(card, layers, len(encoded.layers), largest)
            layout = layer_layout(config)
            return CompressedLayers(card, layout, config.dtype, encoded, host, places, pool, layers, relay)

        device.sources.mount(encoded)
        try:
            source = over_cards(device, len(encoded.layers), share)
        except BaseException:
            device.sources.unmount(encoded)
            raise
        # What was read so far was copied: pages that stay mapped would be a second copy. Staged layers map them again.
        encoded.unmap()
        return source

    return make


def _encoded_host(
    device: Device,
    encoded: EncodedWeights,
    layers: Sequence[int],
    pool: int,
    host_memory: str | HostOpener,
    on_layer: Progress | None,
) -> HostLayers:
    from xinfer_lab.residency.encoded_host import PinnedEncoded, StagedEncoded

    if not isinstance(host_memory, str):
        return host_memory(device, layers)
    if host_memory in ("pinned", "auto"):
        return PinnedEncoded(device, encoded, layers, on_layer)
    if host_memory == "staged":
        return StagedEncoded(device, encoded, layers, depth=max(2, pool - 1))
    if host_memory == "registered":
        raise RequestError("coded layers cannot be registered: choose --host-memory pinned, staged or auto")
    raise ValueError(f"host_memory is 'pinned' or 'staged', not {host_memory!r}")
