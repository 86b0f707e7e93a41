"""A model's layers in their coded form: what sources and plans ask of them, and two kinds that need no file."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from xinfer_lab.device.errors import StreamError
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.residency.codec.encode import encode
from xinfer_lab.residency.codec.format import CODECS, Coding, EncodedLayer, EncodedTensor, aligned, encoded_name
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["EncodedMemory", "EncodedWeights", "SizedEncoding", "checksum", "codec_width", "encode_layer"]

_THREADS = 4
"""Tensors of a layer that are encoded at a time: most of a layer lies in its three largest."""

_ESCAPE_SHARE = {4: 1.5e-4, 3: 0.0212}
"""Of normally distributed weights, those outside the best window of 15 exponents, and of 7: measured."""


class EncodedWeights(Protocol):
    """Layers in their coded form, by `encoded_name`; mountable as a device's source."""

    @property
    def codec(self) -> str:
        """One of `CODECS`."""
        ...

    @property
    def layers(self) -> Sequence[EncodedLayer]:
        """Where the tensors of each layer lie, and how they are coded."""
        ...

    def nbytes(self, name: str) -> int | None:
        """Bytes of the layer ``name``; None if there is none."""
        ...

    def bytes(self, name: str) -> torch.Tensor:
        """The layer's bytes, 1-D uint8."""
        ...

    def unmap(self) -> None:
        """Let go of a file's pages until the next read."""
        ...


def codec_width(codec: str, dtype: torch.dtype) -> int:
    """Bits of a code of ``codec``. Raises `RequestError` for an unknown one, and for weights that are not bfloat16."""
    if codec not in CODECS:
        raise RequestError(f"a codec is one of {', '.join(CODECS)}, not {codec!r}")
    if dtype != torch.bfloat16:
        raise RequestError(
            f"the exponent codec is for bfloat16 weights, and these are {str(dtype).removeprefix('torch.')}: "
            f"stream them without compression, or convert the checkpoint to bfloat16"
        )
    return CODECS[codec]


def checksum(data: torch.Tensor) -> int:
    """CRC-32 of ``data`` (uint8, 1-D, on the host)."""
    return zlib.crc32(data.numpy().data)


def encode_layer(
    weights: ModelWeights, layer: int, width: int, device: torch.device | str = "cpu"
) -> tuple[EncodedLayer, list[torch.Tensor]]:
    """Encode one layer with ``width`` bits a code: where its tensors lie, each one's bytes (1-D uint8, on the host).

    ``device`` does the work, on several tensors at once. Extra memory: the coded layer, and there those tensors.
    """
    places = [place for group in layer_layout(weights.config).groups for place in group.tensors]

    def work(name: str) -> tuple[Coding | None, torch.Tensor, int]:
        raw = weights.bytes(tensor_name(layer, name))
        # A checkpoint may place a tensor at an odd byte, where it cannot be seen as 16-bit numbers.
        even = raw if raw.storage_offset() % 2 == 0 else raw.clone()
        coding, encoded = encode(even.view(torch.bfloat16).to(device), width)
        return coding, encoded.cpu(), checksum(raw)

    with ThreadPoolExecutor(_THREADS) as pool:
        coded = list(pool.map(work, [place.name for place in places]))
    tensors, offset = [], 0
    for place, (coding, encoded, source) in zip(places, coded, strict=True):
        size = encoded.numel()
        tensors.append(
            EncodedTensor(place.name, offset, size, math.prod(place.shape), coding, checksum(encoded), source)
        )
        offset = aligned(offset + size)
    return EncodedLayer(tuple(tensors)), [encoded for _, encoded, _ in coded]


class EncodedMemory:
    """``weights`` encoded when this is made, in memory. ``on_layer(i)`` is called once layer i has been encoded."""

    def __init__(
        self,
        weights: ModelWeights,
        codec: str,
        device: torch.device | str = "cpu",
        on_layer: Callable[[int], None] | None = None,
    ) -> None:
        self.codec = codec
        self.layers: list[EncodedLayer] = []
        self._bytes: dict[str, torch.Tensor] = {}
        width = codec_width(codec, weights.config.dtype)
        for layer in range(weights.config.num_hidden_layers):
            table, parts = encode_layer(weights, layer, width, device)
            whole = torch.zeros(table.nbytes, dtype=torch.uint8, device="cpu")
            for tensor, part in zip(table.tensors, parts, strict=True):
                whole[tensor.offset : tensor.offset + tensor.nbytes] = part
            self.layers.append(table)
            self._bytes[encoded_name(layer)] = whole
            if on_layer is not None:
                on_layer(layer)

    def nbytes(self, name: str) -> int | None:
        """Bytes of the layer ``name``; None if there is none."""
        return self._bytes[name].numel() if name in self._bytes else None

    def bytes(self, name: str) -> torch.Tensor:
        """The layer's bytes, 1-D uint8."""
        return self._bytes[name]

    def unmap(self) -> None:
        """Nothing to do: there is no file."""


class SizedEncoding:
    """The coded form of a model whose weights are taken to be normally distributed: sizes alone, for simulations."""

    def __init__(self, config: Qwen2Config, codec: str) -> None:
        self.codec = codec
        width = codec_width(codec, config.dtype)
        tensors, offset = [], 0
        for place in (place for group in layer_layout(config).groups for place in group.tensors):
            count = math.prod(place.shape)
            coding: Coding | None = Coding(width, 0, count, math.ceil(count * _ESCAPE_SHARE[width]))
            assert coding is not None
            size = min(coding.nbytes, place.nbytes)
            coding = coding if size < place.nbytes else None
            tensors.append(EncodedTensor(place.name, offset, size, count, coding))
            offset = aligned(offset + size)
        self.layers = [EncodedLayer(tuple(tensors))] * config.num_hidden_layers
        self._sizes = {encoded_name(layer): table.nbytes for layer, table in enumerate(self.layers)}

    def nbytes(self, name: str) -> int | None:
        """Bytes of the layer ``name``; None if there is none."""
        return self._sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """Always raises `StreamError`: there are no bytes."""
        raise StreamError(f"{name!r} is known by its size only: a simulation cannot run on a device that computes")

    def unmap(self) -> None:
        """Nothing to do: there is no file."""
