"""Keeps all layers in host memory once, for every row of a benchmark.

Pinning 60 GB for each row would take longer than measuring it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.device.records import Source
from xinfer_lab.qwen2.layout import TensorPlace, layer_layout, tensor_name
from xinfer_lab.residency.host import KeptHost, group_pieces
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["LayerStore", "StoredLayers"]


class LayerStore:
    """``weights`` with every layer in pinned host memory, laid out as on the device; mountable as a device's source.

    ``stored[i]`` is the source that is all of layer i. What stays resident comes from ``weights`` each time.
    """

    def __init__(self, weights: ModelWeights, on_layer: Callable[[int], None] | None = None) -> None:
        self.config = weights.config
        self._weights = weights
        layout = layer_layout(self.config)
        self._places: dict[str, tuple[int, int, TensorPlace]] = {}
        self._memory: list[PinnedMemory] = []
        for layer in range(self.config.num_hidden_layers):
            memory, base = PinnedMemory(layout.nbytes), 0
            for group in layout.groups:
                for place in group.tensors:
                    name = tensor_name(layer, place.name)
                    offset = base + place.offset
                    copy_bytes(memory.tensor[offset : offset + place.nbytes], weights.bytes(name))
                    self._places[name] = (layer, offset, place)
                base += group.nbytes
            self._memory.append(memory)
            if on_layer is not None:
                on_layer(layer)

    @property
    def pinned_bytes(self) -> int:
        """Bytes of host memory that the layers have pinned."""
        return sum(memory.pinned_bytes for memory in self._memory)

    def nbytes(self, name: str) -> int | None:
        """Bytes of the tensor or whole layer ``name``; None if there is none."""
        if (layer := self._layer(name)) is not None:
            return self._memory[layer].tensor.numel()
        return self._weights.nbytes(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The bytes of the tensor or whole layer ``name``: a view of host memory, except for what stays resident."""
        if (layer := self._layer(name)) is not None:
            return self._memory[layer].tensor
        if name in self._places:
            layer, offset, place = self._places[name]
            return self._memory[layer].tensor[offset : offset + place.nbytes]
        return self._weights.bytes(name)

    def locate(self, name: str) -> Source:
        """Where the tensor lies in its layer."""
        layer, offset, place = self._places[name]
        return Source(f"stored[{layer}]", offset, place.nbytes)

    def tensor(self, name: str) -> torch.Tensor:
        """A weight with its dtype and shape, a view of host memory."""
        return self.bytes(name).view(self.config.dtype).view(self._places[name][2].shape)

    def forget(self) -> None:
        """Let go of what drawing left on the GPU."""
        forget = getattr(self._weights, "forget", None)
        if callable(forget):
            forget()

    def unpin(self) -> None:
        """From now on the layers lie in ordinary memory, as in a program that does not pin."""
        for memory in self._memory:
            memory.unpin()

    def close(self) -> None:
        """Give the memory back; no copy may still use it."""
        for memory in self._memory:
            memory.close()
        self._memory = []

    def _layer(self, name: str) -> int | None:
        return int(name[len("stored[") : -1]) if name.startswith("stored[") else None


class StoredLayers(KeptHost):
    """The layers of a `LayerStore` as a residency's host side; the store keeps the memory when it is closed.

    ``layers``: which ones, along which `stage` counts; None: all.
    """

    def __init__(self, device: Device, store: LayerStore, layers: Sequence[int] | None = None) -> None:
        super().__init__()
        layout = layer_layout(store.config)
        for layer in layers if layers is not None else range(store.config.num_hidden_layers):
            heap = device.map_upload_heap(f"stored[{layer}]", f"host.layer[{layer}]")
            self._pieces.append(group_pieces(layout, heap))
            self._heaps.append(heap)
