"""`Plan`: what to keep in device memory and what to stream, for a budget, and the time that follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.memory import WORKSPACE
from xinfer_lab.device.records import Copy
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.cache import CacheFactory, contiguous_cache
from xinfer_lab.residency.codec.encoded import EncodedWeights, SizedEncoding
from xinfer_lab.residency.codec.format import decode_workspace
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL, planned_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.placeholder import PlaceholderLayers
from xinfer_lab.residency.planned import spread
from xinfer_lab.residency.weights import SizedWeights

__all__ = ["CACHE_PAGES", "Plan", "PlanTimes", "Shape", "make_plan", "predict"]

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
class PlanTimes:
    """Seconds of one pass: as the virtual clock has it, and the least that is possible: ``bound`` = max(``resident``,
    ``link``), computing with everything there, and moving the bytes that are not."""

    time: float
    resident: float
    link: float

    @property
    def bound(self) -> float:
        """The least time of a pass."""
        return max(self.resident, self.link)

    @property
    def binding(self) -> str:
        """What binds it: "link" or "computing"."""
        return "link" if self.link > self.resident else "computing"


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
    if host_embedding is None:
        return _best_plan(config, shape, budget, reserved, compress, encoded)
    layers, layer_bytes = config.num_hidden_layers, layer_layout(config).nbytes
    always = {**(reserved or {}), **_always(config, shape, host_embedding)}
    base = sum(always.values())
    room = layers if budget is None else (budget - base) // layer_bytes
    if room >= layers:
        return Plan(layers, (), 0, layer_bytes, always, budget, host_embedding=host_embedding)
    if compress != "none":
        assert budget is not None
        coded = SizedEncoding(config, compress) if encoded is None else encoded
        return _compressed_plan(config, always, budget, coded, host_embedding)
    least = min(MIN_POOL, layers)
    if room < least:
        assert budget is not None
        held = ", ".join(f"{name} {format_bytes(size)}" for name, size in sorted(always.items(), key=lambda i: -i[1]))
        raise RequestError(
            f"{format_bytes(budget)} of device memory are not enough: {format_bytes(base)} are needed besides the "
            f"layers ({held}), and {least} slots of {format_bytes(layer_bytes)} each; use a smaller context or chunk, "
            f"or a larger budget"
        )
    streamed = spread(layers, layers - (room - MIN_POOL))
    return Plan(layers, streamed, MIN_POOL, layer_bytes, always, budget, host_embedding=host_embedding)


def _best_plan(
    config: Qwen2Config,
    shape: Shape,
    budget: int | None,
    reserved: Mapping[str, int] | None,
    compress: str,
    encoded: EncodedWeights | None,
) -> Plan:
    """With the embedding in device memory, where reads are fastest, unless fewer bytes have to move without it."""
    found: list[Plan] = []
    refusal: RequestError | None = None
    for host in (False,) if config.tie_word_embeddings else (False, True):
        try:
            plan = make_plan(
                config, shape, budget, reserved=reserved, compress=compress, encoded=encoded, host_embedding=host
            )
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


def _compressed_plan(
    config: Qwen2Config, always: Mapping[str, int], budget: int, encoded: EncodedWeights, host_embedding: bool
) -> Plan:
    layers, layer_bytes = config.num_hidden_layers, layer_layout(config).nbytes
    sizes = tuple(layer.nbytes for layer in encoded.layers)
    largest = max(tensor.count for layer in encoded.layers for tensor in layer.tensors)
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


def predict(
    config: Qwen2Config, shape: Shape, plan: Plan, spec: GpuSpec, encoded: EncodedWeights | None = None
) -> tuple[PlanTimes, PlanTimes]:
    """Times of a pass over ``chunk`` tokens (the prefill) and of a later one over a single token, in the middle of a
    long run; with a cache in pages over the last token of the context, for which all of them have to come.
    """
    tokens = shape.chunk or shape.context
    prefill = _times(config, shape, plan, spec, encoded, tokens, 0)
    position = shape.context - 1 if shape.paged else min(tokens, shape.context - 1)
    return prefill, _times(config, shape, plan, spec, encoded, 1, position)


def _times(
    config: Qwen2Config,
    shape: Shape,
    plan: Plan,
    spec: GpuSpec,
    encoded: EncodedWeights | None,
    tokens: int,
    position: int,
) -> PlanTimes:
    # More passes than are looked at: the first ones are not steady yet, the last has nothing to fetch for a pass after
    # it. What is in pages takes longer until it goes round.
    passes = 7 if shape.paged else 3
    ends: list[float] = []
    moved = 0.0
    device = SimulatedDevice(spec, memory=None, check=False)
    with device:
        model = _model(config, shape, device, plan, encoded)
        if position:
            for layer in range(config.num_hidden_layers):
                # The tokens before are in the cache, and were not computed.
                model.cache.release(layer, 0, position)
        model.begin(passes + 1)
        for _ in range(passes):
            model.position = position
            first = len(device.stream)
            model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
            ends.append(device.now)
            copies = [r for r in device.stream.records[first:] if isinstance(r, Copy) and r.queue == "copy"]
            moved = sum(spec.copy_time(copy.dst.size) for copy in copies)
        model.close()
    device = SimulatedDevice(spec, memory=None, check=False)
    with device:
        everything = dataclasses.replace(shape, make_cache=contiguous_cache)
        model = _model(config, everything, device, Plan(plan.layers, (), 0, plan.layer_bytes, {}, None))
        model.position = position
        before = device.now
        model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
        resident = device.now - before
        model.close()
    return PlanTimes(ends[-1] - ends[-2], resident, moved)


def _model(
    config: Qwen2Config, shape: Shape, device: SimulatedDevice, plan: Plan, encoded: EncodedWeights | None = None
) -> QwenModel:
    factory = planned_layers(plan, encoded=encoded)
    return QwenModel(
        SizedWeights(config), device, factory, batch=shape.batch, context=shape.context, chunk=shape.chunk,
        positions=shape.positions, host_embedding=plan.host_embedding, make_cache=shape.make_cache,
    )  # fmt: skip


def _always(config: Qwen2Config, shape: Shape, host_embedding: bool) -> dict[str, int]:
    """Bytes by holder of a model with one layer's memory, less that layer: measured on a device of sizes."""
    device = SimulatedDevice(_ANY_GPU, memory=None, check=False)
    model = QwenModel(
        SizedWeights(config), device, PlaceholderLayers, batch=shape.batch, context=shape.context, chunk=shape.chunk,
        positions=shape.positions, host_embedding=host_embedding, make_cache=shape.make_cache,
    )  # fmt: skip
    for tokens, position in ((model.chunk, 0), (model.chunk, model.context - model.chunk), (1, model.context - 1)):
        model.reset()
        model.position = position
        model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
    always: dict[str, int] = {}
    for holder, size in device.memory.use().holders.items():
        if not holder.startswith("slot["):
            name = next((name for start, name in _CACHES.items() if holder.startswith(start)), holder)
            always[name] = always.get(name, 0) + size
    always.setdefault(WORKSPACE, 0)
    return always


_ANY_GPU = GpuSpec("any", 2**62, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0)

_CACHES = {"kv[": "kv cache", "kv.pool": CACHE_PAGES, "kv.gathered": "kv cache, one layer gathered"}
"""What a plan calls the buffers of a cache, by the beginnings of their names."""
