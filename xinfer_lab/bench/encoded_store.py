"""Keeps all layers in coded form in pinned host memory, once for every row of a benchmark; encoded on the GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.device.device import Device
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.residency.codec.encode import encode
from xinfer_lab.residency.codec.encoded import codec_width
from xinfer_lab.residency.codec.format import EncodedLayer, EncodedTensor, aligned, encoded_name
from xinfer_lab.residency.host import KeptHost, Piece

__all__ = ["EncodedStore", "StoredEncoded"]


class EncodedStore:
    """``weights`` in the coded form ``codec``; mountable as a device's source. Raises `RequestError` for another dtype.

    There is no checksum: the result is compared with the resident run, byte for byte.
    """

    def __init__(self, weights: DrawnWeights, codec: str) -> None:
        self.codec = codec
        self.layers: list[EncodedLayer] = []
        self._memory: dict[str, PinnedMemory] = {}
        width = codec_width(codec, weights.config.dtype)
        places = [place for group in layer_layout(weights.config).groups for place in group.tensors]
        for layer in range(weights.config.num_hidden_layers):
            parts: list[torch.Tensor] = []
            tensors, offset = [], 0
            for place in places:
                plain = weights.bytes(tensor_name(layer, place.name)).view(weights.config.dtype)
                coding, encoded = encode(plain, width)
                # What was not coded is a view of the weights, of which only the last tensor is kept.
                parts.append(encoded.clone() if coding is None else encoded)
                tensors.append(EncodedTensor(place.name, offset, encoded.numel(), plain.numel(), coding))
                offset = aligned(offset + encoded.numel())
            table = EncodedLayer(tuple(tensors))
            memory = PinnedMemory(table.nbytes)
            for tensor, part in zip(table.tensors, parts, strict=True):
                memory.tensor[tensor.offset : tensor.offset + tensor.nbytes].copy_(part)
            self.layers.append(table)
            self._memory[encoded_name(layer)] = memory
        weights.forget()

    def nbytes(self, name: str) -> int | None:
        """Bytes of the layer ``name``; None if there is none."""
        return self._memory[name].tensor.numel() if name in self._memory else None

    def bytes(self, name: str) -> torch.Tensor:
        """The layer's bytes, 1-D uint8, pinned."""
        return self._memory[name].tensor

    def unmap(self) -> None:
        """Nothing to do: there is no file."""

    def close(self) -> None:
        """Give the memory back; no copy may still use it."""
        for memory in self._memory.values():
            memory.close()
        self._memory = {}


class StoredEncoded(KeptHost):
    """Some layers of an `EncodedStore` as a residency's host side, which keeps the memory; `stage` counts along
    ``layers``."""

    def __init__(self, device: Device, layers: Sequence[int]) -> None:
        super().__init__()
        names = [encoded_name(layer) for layer in layers]
        self._heaps += [device.map_upload_heap(name, f"host.{name}") for name in names]
        self._pieces += [(Piece(0, 0, heap.span()),) for heap in self._heaps]
