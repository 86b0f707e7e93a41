"""`Plan`: what to keep in device memory and what to stream, for a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.memory import WORKSPACE
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.cache import CacheFactory, contiguous_cache
from xinfer_lab.residency.codec.encoded import EncodedWeights, SizedEncoding
from xinfer_lab.residency.codec.format import decode_workspace
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL
from xinfer_lab.residency.group import over_cards
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.placeholder import PlaceholderLayers
from xinfer_lab.residency.planned import spread
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import ModelWeights, SizedWeights

__all__ = ["CACHE_PAGES", "GroupPlan", "Plan", "Shape", "make_plan", "plan_cards"]

CACHE_PAGES = "kv cache, pages"
"""What a plan calls the device memory of a cache's page pool."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the model is to run: ``batch`` sequences with room for ``context`` tokens, at most ``chunk`` tokens of each
    in a pass, logits of the last ``positions``. ``make_cache`` makes the cache, in pages or in one piece."""

    context: int
    batch: int = 1
    chunk: int | None = None
    positions: int = 1
    make_cache: CacheFactory = contiguous_cache

    @property
    def paged(self) -> bool:
        """Whether the cache may have to come over the link."""
        return self.make_cache is not contiguous_cache


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every byte of device memory goes.

    ``streamed``: the layers that pass through ``slots`` slots (none: everything is resident). ``always`` names what is
    there whatever the plan (bytes by holder); ``layer_bytes`` is one layer, ``peak`` everything together, within
    ``budget``. ``compress`` names the codec of all layers, or is "none"; ``encoded`` are the bytes of each in its coded
    form then. ``host_embedding``: the embedding stays in host memory, so that more layers fit.
    """

    layers: int
    streamed: tuple[int, ...]
    slots: int
    layer_bytes: int
    always: Mapping[str, int]
    budget: int | None
    compress: str = "none"
    encoded: tuple[int, ...] = ()
    host_embedding: bool = False

    @property
    def resident(self) -> int:
        """How many layers stay."""
        return self.layers - len(self.streamed)

    @property
    def peak(self) -> int:
        """Bytes of device memory at most in use."""
        return sum(self.always.values()) + self.held

    @property
    def held(self) -> int:
        """Bytes of layers in device memory: those that stay, the slots, and, of coded ones, the layer in use."""
        if self.compress == "none":
            return (self.resident + self.slots) * self.layer_bytes
        slot = max((self.encoded[layer] for layer in self.streamed), default=0)
        return sum(self.encoded) - self.moved + self.slots * slot + self.layer_bytes

    @property
    def moved(self) -> int:
        """Bytes of weights that each pass moves over the link."""
        if self.compress == "none":
            return len(self.streamed) * self.layer_bytes
        return sum(self.encoded[layer] for layer in self.streamed)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A plan for several equal cards: ``cards[c]`` is that of card c, for its own layers c, c + G, c + 2 G, ..."""

    cards: tuple[Plan, ...]

    @property
    def layers(self) -> int:
        """Layers on all cards."""
        return sum(plan.layers for plan in self.cards)

    @property
    def streamed(self) -> tuple[int, ...]:
        """The layers that stream, by their numbers in the model."""
        cards = len(self.cards)
        return tuple(sorted(card + cards * place for card, plan in enumerate(self.cards) for place in plan.streamed))

    @property
    def resident(self) -> int:
        """How many layers stay."""
        return self.layers - len(self.streamed)

    @property
    def slots(self) -> int:
        """Slots on each card that streams."""
        return max(plan.slots for plan in self.cards)

    @property
    def compress(self) -> str:
        """The codec of all layers, or "none"."""
        return self.cards[0].compress

    @property
    def host_embedding(self) -> bool:
        """Whether the embedding stays in host memory."""
        return self.cards[0].host_embedding

    @property
    def peak(self) -> int:
        """Bytes at most in use on the fullest card."""
        return max(plan.peak for plan in self.cards)

    @property
    def moved(self) -> int:
        """Bytes of weights that each pass moves over the busiest link."""
        return max(plan.moved for plan in self.cards)


def make_plan(
    config: Qwen2Config,
    shape: Shape,
    budget: int | None,
    *,
    reserved: Mapping[str, int] | None = None,
    compress: str = "none",
    encoded: EncodedWeights | None = None,
    host_embedding: bool | None = None,
) -> Plan:
    """The plan with the most resident layers that ``budget`` bytes allow (None: no limit), and two slots for the rest.

    ``reserved``: bytes that the device holds already, by holder. ``compress`` ("3bit", "4bit" or "none"): where not all
    layers fit as they are, all of them are kept and streamed in their coded form, of which more fit; ``encoded`` knows
    the sizes (default: those of normally distributed weights). ``host_embedding`` None: the embedding goes to host
    memory where that leaves fewer bytes to move in each pass. Raises `RequestError` if not even two slots fit.
    """
    (plan,) = plan_cards(
        config, shape, budget, 1, reserved=[reserved or {}], compress=compress, encoded=encoded,
        host_embedding=host_embedding,
    ).cards  # fmt: skip
    return plan


def plan_cards(
    config: Qwen2Config,
    shape: Shape,
    budget: int | None,
    cards: int,
    *,
    reserved: Sequence[Mapping[str, int]] | None = None,
    compress: str = "none",
    encoded: EncodedWeights | None = None,
    host_embedding: bool | None = None,
) -> GroupPlan:
    """As `make_plan`, for ``cards`` cards with ``budget`` bytes each, of which ``reserved[c]`` are held already."""
    given: tuple[bool, ...] = (False, True)
    if host_embedding is not None:
        given = (host_embedding,)
    elif config.tie_word_embeddings:
        given = (False,)
    # With the embedding in device memory, where reads are fastest, unless fewer bytes have to move without it.
    found: list[GroupPlan] = []
    refusal: RequestError | None = None
    for host in given:
        always = [
            {**held, **needed}
            for held, needed in zip(reserved or [{}] * cards, _always(config, shape, host, cards), strict=True)
        ]
        try:
            plan = _fit(config, always, budget, compress, encoded, host)
        except RequestError as error:
            refusal = refusal or error
        else:
            found.append(plan)
            if not plan.streamed and plan.compress == "none":
                break
    if not found:
        assert refusal is not None
        raise refusal
    return min(found, key=lambda plan: (plan.moved, plan.compress != "none"))


def _fit(
    config: Qwen2Config,
    always: Sequence[Mapping[str, int]],
    budget: int | None,
    compress: str,
    encoded: EncodedWeights | None,
    host_embedding: bool,
) -> GroupPlan:
    """A plan for each card, which holds ``always[c]`` whatever the plan."""
    layer_bytes = layer_layout(config).nbytes
    shares = [range(card, config.num_hidden_layers, len(always)) for card in range(len(always))]
    room = [
        len(share) if budget is None else (budget - sum(held.values())) // layer_bytes
        for share, held in zip(shares, always, strict=True)
    ]
    if compress != "none" and any(fits < len(share) for share, fits in zip(shares, room, strict=True)):
        assert budget is not None
        coded = SizedEncoding(config, compress) if encoded is None else encoded
        return GroupPlan(
            tuple(
                _compressed_plan(layer_bytes, share, held, budget, coded, host_embedding)
                for share, held in zip(shares, always, strict=True)
            )
        )
    return GroupPlan(
        tuple(
            _plain_plan(layer_bytes, len(share), held, budget, fits, host_embedding)
            for share, held, fits in zip(shares, always, room, strict=True)
        )
    )


def _plain_plan(
    layer_bytes: int, layers: int, always: Mapping[str, int], budget: int | None, room: int, host_embedding: bool
) -> Plan:
    if room >= layers:
        return Plan(layers, (), 0, layer_bytes, always, budget, host_embedding=host_embedding)
    least = min(MIN_POOL, layers)
    if room < least:
        assert budget is not None
        held = ", ".join(f"{name} {format_bytes(size)}" for name, size in sorted(always.items(), key=lambda i: -i[1]))
        raise RequestError(
            f"{format_bytes(budget)} of device memory are not enough: {format_bytes(sum(always.values()))} are needed "
            f"besides the layers ({held}), and {least} slots of {format_bytes(layer_bytes)} each; use a smaller "
            f"context or chunk, or a larger budget"
        )
    streamed = spread(layers, layers - (room - MIN_POOL))
    return Plan(layers, streamed, MIN_POOL, layer_bytes, always, budget, host_embedding=host_embedding)


def _compressed_plan(
    layer_bytes: int,
    share: Sequence[int],
    always: Mapping[str, int],
    budget: int,
    encoded: EncodedWeights,
    host_embedding: bool,
) -> Plan:
    layers = len(share)
    sizes = tuple(encoded.layers[layer].nbytes for layer in share)
    largest = max(tensor.count for layer in share for tensor in encoded.layers[layer].tensors)
    held = {**always, WORKSPACE: max(always.get(WORKSPACE, 0), decode_workspace(largest))}
    # With as many slots as streamed layers, these might as well stay.
    least = min(MIN_POOL + 1, layers)
    for count in (0, *range(least, layers + 1)):
        plan = Plan(
            layers, spread(layers, count), MIN_POOL if count else 0, layer_bytes, held, budget, encoded.codec, sizes,
            host_embedding,
        )  # fmt: skip
        if plan.peak <= budget:
            return plan
    raise RequestError(
        f"{format_bytes(budget)} of device memory are not enough: {format_bytes(sum(held.values()))} are needed "
        f"besides the layers, and {format_bytes(plan.held)} for one layer and {MIN_POOL} slots of coded ones; "
        f"use a smaller context or chunk, or a larger budget"
    )


def _always(config: Qwen2Config, shape: Shape, host_embedding: bool, cards: int) -> list[dict[str, int]]:
    """Bytes by holder on each card of a model with one layer's memory there, less that layer: measured on a device of
    sizes."""
    device = SimulatedDevice(_ANY_GPU, memory=None, check=False, nodes=cards)

    def layers(device: Device, weights: ModelWeights) -> LayerSource:
        return over_cards(device, config.num_hidden_layers, lambda card, _: PlaceholderLayers(card, weights))

    model = QwenModel(
        SizedWeights(config), device, layers, batch=shape.batch, context=shape.context, chunk=shape.chunk,
        positions=shape.positions, host_embedding=host_embedding, make_cache=shape.make_cache,
    )  # fmt: skip
    for tokens, position in ((model.chunk, 0), (model.chunk, model.context - model.chunk), (1, model.context - 1)):
        model.reset()
        model.position = position
        model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
    return [_by_name(memory.use().holders) for memory in device.memories]


def _by_name(holders: Mapping[str, int]) -> dict[str, int]:
    always: dict[str, int] = {}
    for holder, size in holders.items():
        if not holder.startswith("slot["):
            plain = holder.partition("@")[0]
            name = next((name for start, name in _CACHES.items() if plain.startswith(start)), plain)
            always[name] = always.get(name, 0) + size
    always.setdefault(WORKSPACE, 0)
    return always


_ANY_GPU = GpuSpec("any", 2**62, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0)

_CACHES = {"kv[": "kv cache", "kv.pool": CACHE_PAGES, "kv.gathered": "kv cache, one layer gathered"}
"""What a plan calls the buffers of a cache, by the beginnings of their names."""
