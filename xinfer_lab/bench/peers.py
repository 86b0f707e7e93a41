"""Measures what people use today, on the same weights: transformers with each installed way of moving layers.

They are imported when a benchmark asks for them by name, never with the package. Their logits are compared with those
of transformers with everything resident: its kernels are not ours, so bytes differ between the two.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.bench.measure import Measured, Workload, empty_cache, run_passes
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.qwen2.layout import layer_layout, resident_tensors

__all__ = ["PEERS", "Peer", "PeerModel", "installed"]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A way of moving layers: ``needs`` is the package it uses besides transformers, ``place`` puts a model
    where that way wants it. ``pageable``: its weights lie in ordinary memory, as loading leaves them; else they are
    pinned already, as such a way would do itself. ``compiled``: decode steps are compiled and captured as CUDA graphs
    over a cache of fixed size, and other passes are not its business."""

    name: str
    needs: str
    place: Callable[[Any, torch.device, int], object]
    pageable: bool = False
    compiled: bool = False


def installed(peer: Peer) -> bool:
    """Whether all that ``peer`` needs is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("transformers", peer.needs))


class PeerModel:
    """transformers' model moved by ``peer``, ready for any number of workloads. ``kept``: layers that stay on the GPU,
    where the peer can keep some."""

    def __init__(self, peer: Peer, store: LayerStore, device: torch.device, kept: int) -> None:
        empty_cache()
        self._store, self._device = store, device
        self._before = torch.cuda.memory_allocated(device)
        start = time.perf_counter()
        self._model = _model(store, device)
        self._handle = peer.place(self._model, device, kept)
        self.setup = time.perf_counter() - start
        stay = kept if peer.place is _device_map else 0
        moved = (store.config.num_hidden_layers - stay) * layer_layout(store.config).weight_nbytes
        self._moved = 0 if peer.place is _resident else moved
        self._compiled, self._step, self._position, self._room = peer.compiled, self._model, 0, 0
        if peer.compiled:
            self._step = torch.compile(self._model, mode="reduce-overhead", fullgraph=True)
        self._cache: Any = None

    def measure(self, workload: Workload) -> Measured:
        """Run ``workload``, the first pass untimed."""
        self._room = workload.context
        self._reset()
        if self._compiled:
            # Compiling takes a pass, capturing another one.
            run_passes(Workload(1, 3, workload.prompt), self._store.config, self._forward, self._reset)
            self._reset()
        torch.cuda.reset_peak_memory_stats(self._device)
        seconds, logits = run_passes(workload, self._store.config, self._forward, self._reset)
        peak = torch.cuda.max_memory_allocated(self._device) - self._before
        self._cache = None
        return Measured(seconds, logits, self._moved, peak, None)

    def _reset(self) -> None:
        transformers = importlib.import_module("transformers")
        self._position = 0
        if not self._compiled:
            self._cache = transformers.DynamicCache()
        elif self._cache is None:
            self._cache = transformers.StaticCache(config=self._model.config, max_cache_len=self._room)
        else:
            self._cache.reset()

    def _forward(self, tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad() if self._compiled else torch.inference_mode():
            run, given = self._model, {}
            if self._compiled:
                places = torch.arange(self._position, self._position + tokens.shape[1], device=self._device)
                given = {"position_ids": places.unsqueeze(0)}
                if tokens.shape[1] == 1:
                    run = self._step
                    torch.compiler.cudagraph_mark_step_begin()
            ids = tokens.to(self._device)
            out = run(input_ids=ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1, **given)
            self._position += tokens.shape[1]
            logits: torch.Tensor = out.logits.cpu()
            return logits

    def close(self) -> None:
        """Let go of the model."""
        torch.cuda.synchronize(self._device)
        self._model = self._handle = self._cache = self._step = None
        if self._compiled:
            torch._dynamo.reset()
        empty_cache()


def _model(store: LayerStore, device: torch.device) -> Any:
    """transformers' model with its layers as views of the store, everything else on the GPU."""
    transformers = importlib.import_module("transformers")
    config = transformers.Qwen2Config.from_dict(store.config.to_dict())
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config).to(store.config.dtype).eval()
    outside = {
        place.name: store.bytes(place.name).to(device, copy=True).view(store.config.dtype).view(place.shape)
        for place in resident_tensors(store.config).tensors
    }
    store.forget()
    layers = {name: store.tensor(name) for name in model.state_dict() if name.startswith("model.layers.")}
    model.load_state_dict({**outside, **layers}, assign=True, strict=False)
    if store.config.tie_word_embeddings:
        # A tied checkpoint has no head of its own: it was left on "meta".
        model.lm_head.weight = model.model.embed_tokens.weight
    model.requires_grad_(False)
    # Its frequencies are not weights, and were left on "meta".
    with torch.device(device):
        model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model


def _resident(model: Any, device: torch.device, _: int) -> object:
    model.to(device)
    return None


def _cpu_offload(model: Any, device: torch.device, _: int) -> object:
    importlib.import_module("accelerate").cpu_offload(model.model.layers, execution_device=device)
    return None


def _device_map(model: Any, device: torch.device, kept: int) -> object:
    layers = len(model.model.layers)
    places: dict[str, Any] = {"model.embed_tokens": device, "model.norm": device, "lm_head": device}
    places["model.rotary_emb"] = device
    places |= {f"model.layers.{layer}": device if layer < kept else "cpu" for layer in range(layers)}
    importlib.import_module("accelerate").dispatch_model(model, device_map=places, main_device=device)
    return None


def _group_offload(model: Any, device: torch.device, _: int) -> object:
    hooks = importlib.import_module("diffusers.hooks")
    # What is not in a block is moved with every pass too; the embedding stays on the GPU here, as with all others.
    embedding, model.model.embed_tokens = model.model.embed_tokens, torch.nn.Identity()
    hooks.apply_group_offloading(
        model.model, onload_device=device, offload_device=torch.device("cpu"), offload_type="block_level",
        num_blocks_per_group=1, use_stream=True,
    )  # fmt: skip
    model.model.embed_tokens = embedding
    return None


class _Prefetch:
    """Layers uploaded ``ahead`` of their use into buffers of their own, on a copy stream with events: what serving
    engines do. The uploads go on from one pass into the next."""

    def __init__(self, layers: Any, device: torch.device, ahead: int = 2) -> None:
        self._layers, self._ahead = list(layers), ahead
        self._stream = torch.cuda.Stream(device)
        self._host = [list(_tensors(layer)) for layer in self._layers]
        self._slots = [
            [torch.empty_like(tensor.data, device=device) for tensor in self._host[0]] for _ in range(ahead + 1)
        ]
        self._home = [[tensor.data for tensor in tensors] for tensors in self._host]
        self._arrived = [torch.cuda.Event() for _ in self._layers]
        self._done: list[torch.cuda.Event | None] = [None] * (ahead + 1)
        self._next = 0
        for layer in self._layers:
            layer.register_forward_pre_hook(self._before)
            layer.register_forward_hook(self._after)
        self._number = {id(layer): number for number, layer in enumerate(self._layers)}
        self._step = 0
        for _ in range(ahead):
            self._upload()

    def _upload(self) -> None:
        layer, slot = self._next % len(self._layers), self._next % len(self._slots)
        with torch.cuda.stream(self._stream):
            if (done := self._done[slot]) is not None:
                self._stream.wait_event(done)
            for there, here in zip(self._slots[slot], self._home[layer], strict=True):
                there.copy_(here, non_blocking=True)
            self._arrived[layer].record(self._stream)
        self._next += 1

    def _before(self, layer: Any, _: Any) -> None:
        number, slot = self._number[id(layer)], self._step % len(self._slots)
        torch.cuda.current_stream().wait_event(self._arrived[number])
        for tensor, there in zip(self._host[number], self._slots[slot], strict=True):
            tensor.data = there
        self._upload()

    def _after(self, layer: Any, _: Any, __: Any) -> None:
        number, slot = self._number[id(layer)], self._step % len(self._slots)
        for tensor, home in zip(self._host[number], self._home[number], strict=True):
            tensor.data = home
        event = torch.cuda.Event()
        event.record()
        self._done[slot] = event
        self._step += 1


def _tensors(layer: Any) -> Iterator[torch.Tensor]:
    yield from layer.parameters()


def _prefetch(model: Any, device: torch.device, _: int) -> object:
    return _Prefetch(model.model.layers, device)


PEERS = (
    Peer(name="transformers, resident", needs="transformers", place=_resident),
    Peer(name="transformers, compiled", needs="transformers", place=_resident, compiled=True),
    Peer(name="prefetching offloader, 2 ahead", needs="transformers", place=_prefetch),
    Peer(name="diffusers group offloading", needs="diffusers", place=_group_offload),
    Peer(name="accelerate device_map", needs="accelerate", place=_device_map, pageable=True),
    Peer(name="accelerate cpu_offload", needs="accelerate", place=_cpu_offload, pageable=True),
)
"""The logits of the others are compared with those of the first."""
