"""`KVCache`: what the forward pass asks for each layer's keys and values. One protocol, in one piece or in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.group import card_of, place_of

__all__ = [
    "CacheFactory",
    "CacheShape",
    "ContiguousCache",
    "GroupCache",
    "KVCache",
    "cache_over_cards",
    "cache_shape",
    "contiguous_cache",
]


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Room for ``context`` tokens of ``batch`` sequences in each of ``layers`` layers; ``windows[i]`` is how many keys
    a query of layer i sees, itself included (None: all). ``numbers``: what the layers are called, where they are some
    of a model's."""

    layers: int
    context: int
    batch: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    windows: tuple[int | None, ...]
    numbers: tuple[int, ...] | None = None

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys (its values take as many) in one layer, of all sequences."""
        return self.batch * self.kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def layer_bytes(self) -> int:
        """Bytes of one layer's keys and values."""
        return 2 * self.context * self.token_bytes

    def share(self, layers: Sequence[int]) -> CacheShape:
        """The same for these of the layers alone."""
        windows = tuple(self.windows[layer] for layer in layers)
        return replace(self, layers=len(layers), windows=windows, numbers=tuple(layers))

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
    """A buffer for each layer, with room for the whole context."""

    def __init__(self, device: Device, shape: CacheShape) -> None:
        self._device = device
        numbers = range(shape.layers) if shape.numbers is None else shape.numbers
        self._buffers = [device.create_buffer(shape.layer_bytes, f"kv[{layer}]") for layer in numbers]
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


class GroupCache:
    """The caches of G cards' shares of the layers as one: layer i is layer i // G of share i mod G."""

    def __init__(self, shares: Sequence[KVCache]) -> None:
        self.shares = list(shares)

    def ensure(self, layer: int, position: int, tokens: int) -> View:
        """As the share's own."""
        card, place = place_of(layer, len(self.shares))
        return self.shares[card].ensure(place, position, tokens)

    def release(self, layer: int, position: int, tokens: int) -> None:
        """As the share's own."""
        card, place = place_of(layer, len(self.shares))
        self.shares[card].release(place, position, tokens)

    def reset(self) -> None:
        """Forget all tokens, on every card."""
        for share in self.shares:
            share.reset()

    def close(self) -> None:
        """Drain every card, and give its memory back."""
        for share in self.shares:
            share.close()


def cache_over_cards(device: Device, shape: CacheShape, make: CacheFactory) -> KVCache:
    """The cache that ``make`` makes on a card, for each card's share of the layers."""
    cards = len(device.nodes)
    if cards == 1:
        return make(device, shape)
    return GroupCache(
        [make(card_of(device, card), shape.share(range(card, shape.layers, cards))) for card in range(cards)]
    )


def contiguous_cache(device: Device, shape: CacheShape) -> KVCache:
    """A cache in one piece a layer, on the layer's card."""
    return cache_over_cards(device, shape, ContiguousCache)
