"""`KVCache`: what the forward pass asks for each layer's keys and values. One protocol, in one piece or in pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.group import card_of

__all__ = ["CacheFactory", "CacheShape", "ContiguousCache", "KVCache", "cache_shape", "contiguous_cache"]


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Room for ``context`` tokens of ``batch`` sequences in each of ``layers`` layers; ``windows[i]`` is how many keys
    a query of layer i sees, itself included (None: all)."""

    layers: int
    context: int
    batch: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    windows: tuple[int | None, ...]

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys (its values take as many) in one layer, of all sequences."""
        return self.batch * self.kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def layer_bytes(self) -> int:
        """Bytes of one layer's keys and values."""
        return 2 * self.context * self.token_bytes

    def tokens(self, count: int) -> tuple[int, ...]:
        """The shape of keys and values of ``count`` tokens: token first, so that tokens in a row are bytes in a row."""
        return (2, count, self.batch, self.kv_heads, self.head_dim)


def cache_shape(config: Qwen2Config, batch: int, context: int) -> CacheShape:
    """The shape of a model's cache."""
    layers = config.num_hidden_layers
    windows = tuple(config.window(layer) for layer in range(layers))
    return CacheShape(layers, context, batch, config.num_key_value_heads, config.head_dim, config.dtype, windows)


class KVCache(Protocol):
    """Keys and values, layer by layer, in the order of the layers. Nothing here blocks the host, `close` aside."""

    def ensure(self, layer: int, position: int, tokens: int) -> View:
        """[2, context, B, KVH, D]: from here on the direct queue may read what the layer's queries see of the tokens
        before ``position`` there, and write those from ``position`` to ``position + tokens``."""
        ...

    def release(self, layer: int, position: int, tokens: int) -> None:
        """The direct queue has been given the command that wrote these tokens, and its last one on the view."""
        ...

    def reset(self) -> None:
        """Forget all tokens: a new sequence starts."""
        ...

    def close(self) -> None:
        """Drain, and give the memory back. May be called again."""
        ...


CacheFactory = Callable[[Device, CacheShape], KVCache]
"""Makes a model's cache."""


class ContiguousCache:
    """A buffer for each layer, with room for the whole context, on the card that the layer lives on."""

    def __init__(self, device: Device, shape: CacheShape) -> None:
        self._device = device
        self._buffers = [
            card_of(device, layer).create_buffer(shape.layer_bytes, f"kv[{layer}]") for layer in range(shape.layers)
        ]
        self._views = [buffer.view(shape.dtype, shape.tokens(shape.context)) for buffer in self._buffers]

    def ensure(self, layer: int, position: int, tokens: int) -> View:
        """Everything is there."""
        return self._views[layer]

    def release(self, layer: int, position: int, tokens: int) -> None:
        """Everything stays."""

    def reset(self) -> None:
        """Later tokens overwrite earlier ones."""

    def close(self) -> None:
        """Give the memory back; the host has waited for the queues."""
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []


def contiguous_cache(device: Device, shape: CacheShape) -> KVCache:
    """A cache in one piece a layer."""
    return ContiguousCache(device, shape)
