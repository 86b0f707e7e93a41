"""What people use today, on the same weights: transformers with each way of moving layers that is installed.

They are asked for by name when a benchmark runs, never imported with the package. Their logits are held against those
of transformers with everything resident: its kernels are not ours, so bytes differ between the two.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.bench.measure import Measured, Workload, run_passes
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.qwen2.layout import layer_layout, resident_tensors

__all__ = ["PEERS", "Peer", "installed", "measure_peer"]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A way of moving layers: ``needs`` is the package that it is made of besides transformers, ``place`` puts a model
    where that way wants it. ``pageable``: its weights lie in ordinary memory, as loading leaves them; ``own``: in a
    copy of its own there, which it pins itself."""

    name: str
    needs: str
    place: Callable[[Any, torch.device, int], object]
    pageable: bool = False
    own: bool = False


def installed(peer: Peer) -> bool:
    """Whether all that ``peer`` needs is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("transformers", peer.needs))


def measure_peer(peer: Peer, store: LayerStore, workload: Workload, device: torch.device, kept: int) -> Measured:
    """Run ``workload``. ``kept``: layers that stay on the GPU, where the peer can keep some."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    model = _model(store, device, own=peer.own)
    handle = peer.place(model, device, kept)
    transformers = importlib.import_module("transformers")
    caches: list[Any] = [transformers.DynamicCache()]

    def forward(tokens: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            out = model(
                input_ids=tokens.to(device), past_key_values=caches[0], use_cache=True, logits_to_keep=1
            )  # fmt: skip
            logits: torch.Tensor = out.logits.cpu()
            return logits

    def reset() -> None:
        caches[0] = transformers.DynamicCache()

    torch.cuda.reset_peak_memory_stats(device)
    seconds, logits = run_passes(workload, store.config, forward, reset)
    peak = torch.cuda.max_memory_allocated(device) - before
    del handle
    moved = (store.config.num_hidden_layers - (kept if peer.place is _device_map else 0)) * layer_layout(
        store.config
    ).weight_nbytes
    return Measured(seconds, logits, 0 if peer.place is _resident else moved, peak, None)


def _model(store: LayerStore, device: torch.device, *, own: bool) -> Any:
    """transformers' model with its layers as views of the store (or copies of them), everything else on the GPU."""
    transformers = importlib.import_module("transformers")
    config = transformers.Qwen2Config.from_dict(store.config.to_dict())
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config).to(store.config.dtype).eval()
    outside = {
        place.name: store.bytes(place.name).to(device, copy=True).view(store.config.dtype).view(place.shape)
        for place in resident_tensors(store.config).tensors
    }
    layers = {
        name: store.tensor(name).clone() if own else store.tensor(name)
        for name in model.state_dict()
        if name.startswith("model.layers.")
    }
    model.load_state_dict({**outside, **layers}, assign=True, strict=False)
    model.requires_grad_(False)
    # Its frequencies are no weights, and were left on "meta".
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
    hooks.apply_group_offloading(
        model.model, onload_device=device, offload_device=torch.device("cpu"), offload_type="block_level",
        num_blocks_per_group=1, use_stream=True,
    )  # fmt: skip
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
    Peer(name="prefetching offloader, 2 ahead", needs="transformers", place=_prefetch),
    Peer(name="diffusers group offloading", needs="diffusers", place=_group_offload, own=True),
    Peer(name="accelerate device_map", needs="accelerate", place=_device_map, pageable=True),
    Peer(name="accelerate cpu_offload", needs="accelerate", place=_cpu_offload, pageable=True),
)
"""The first is what the logits of the others are held against."""
