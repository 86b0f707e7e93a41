"""Where a model's weights come from, and the device memory that holds a layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import StreamError
from xinfer_lab.device.records import Source, View
from xinfer_lab.qwen2.checkpoint import Checkpoint, expected_shapes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import GroupLayout, LayerLayout
from xinfer_lab.qwen2.synthetic import synthetic_tensor

__all__ = [
    "SMALL",
    "CheckpointWeights",
    "LayerSlot",
    "LayerWeights",
    "ModelWeights",
    "SizedWeights",
    "SyntheticWeights",
    "group_views",
]

_FILE = "file "
"""What the name of a whole file begins with, as a source; no tensor's name holds a space."""


class ModelWeights(Protocol):
    """A model's weights by their checkpoint names, as flat bytes; mountable as a device's source."""

    @property
    def config(self) -> Qwen2Config:
        """The model's shape; ``config.dtype`` is the weights' dtype."""
        ...

    def nbytes(self, name: str) -> int | None:
        """Bytes of the tensor ``name``; None if there is none."""
        ...

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's bytes, 1-D uint8."""
        ...

    def locate(self, name: str) -> Source:
        """Where the tensor's bytes lie inside a larger source of this provider, such as a file; its own if in none."""
        ...


class CheckpointWeights:
    """The weights of an open checkpoint, read through its memory map."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._sizes = {name: checkpoint.entry(name).nbytes for name in checkpoint.names()}
        self._files = {f"{_FILE}{name}": path for name, path in checkpoint.files().items()}

    @property
    def config(self) -> Qwen2Config:
        """The checkpoint's config."""
        return self._checkpoint.config

    def nbytes(self, name: str) -> int | None:
        """Bytes of the tensor ``name``, or of a file by the name that `locate` gives it; None if there is none."""
        if name in self._files:
            return self._files[name].stat().st_size
        return self._sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's or file's bytes, a view of the memory map."""
        if name in self._files:
            return self._checkpoint.file_bytes(name.removeprefix(_FILE))
        return self._checkpoint.bytes(name)

    def file_of(self, name: str) -> Path | None:
        """The checkpoint's file that `locate` calls ``name``; None for a tensor."""
        return self._files.get(name)

    def locate(self, name: str) -> Source:
        """Where the tensor lies in its file."""
        entry = self._checkpoint.entry(name)
        return Source(f"{_FILE}{entry.file.name}", entry.offset, entry.nbytes)


class SizedWeights:
    """The weights of a model that is not there: sizes from its config, no bytes. Enough for a simulation."""

    def __init__(self, config: Qwen2Config) -> None:
        self.config = config
        self._sizes = {
            name: math.prod(shape) * config.dtype.itemsize for name, shape in expected_shapes(config).items()
        }

    def nbytes(self, name: str) -> int | None:
        """Bytes of the tensor ``name``; None if the model has none."""
        return self._sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """Always raises `StreamError`: there are no bytes."""
        raise StreamError(f"{name!r} is known by its size only: a simulation cannot run on a device that computes")

    def locate(self, name: str) -> Source:
        """The tensor itself: there is no file."""
        if name not in self._sizes:
            raise StreamError(f"this model has no tensor {name!r}")
        return Source(name, 0, self._sizes[name])


SMALL = 2**16
"""Bytes of a synthetic tensor up to which the process keeps it: making one takes twenty times as long as copying it."""


@lru_cache(maxsize=1024)
def _made(name: str, shape: tuple[int, ...], config: Qwen2Config, seed: int) -> torch.Tensor:
    return synthetic_tensor(name, shape, config, seed).contiguous().reshape(-1).view(torch.uint8)


class SyntheticWeights(SizedWeights):
    """The weights that `xinfer_lab.qwen2.synthetic` makes for a config and a seed, made when asked for; nothing on
    disk.
    """

    def __init__(self, config: Qwen2Config, seed: int) -> None:
        super().__init__(config)
        self._seed = seed
        self._shapes = expected_shapes(config)
        self._last: tuple[str, torch.Tensor] = ("", torch.empty(0, dtype=torch.uint8, device="cpu"))

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's bytes: the same for the same config, seed and name. Of the large ones only the last is kept:
        loading reads in chunks.
        """
        if name not in self._shapes:
            raise StreamError(f"this model has no tensor {name!r}")
        if self._sizes[name] <= SMALL:
            # A copy for each caller: writing into one changes no other.
            return _made(name, self._shapes[name], self.config, self._seed).clone()
        # Read once: several threads may ask for different tensors at the same time.
        last = self._last
        if last[0] != name:
            tensor = synthetic_tensor(name, self._shapes[name], self.config, self._seed)
            last = self._last = (name, tensor.contiguous().reshape(-1).view(torch.uint8))
        return last[1]


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer's weights in device memory: ``views`` by name relative to the layer, and the ``buffers`` that hold
    them.
    """

    layer: int
    buffers: tuple[Buffer, ...]
    views: Mapping[str, View]


class LayerSlot:
    """Device memory for one layer: a buffer for each group of its tensors ("attention", "mlp").

    ``ready`` is the value of the copy fence at which what was last uploaded here may be read.
    """

    def __init__(self, device: Device, name: str, layout: LayerLayout, dtype: torch.dtype) -> None:
        self.name = name
        self.buffers = tuple(device.create_buffer(group.nbytes, f"{name}.{group.name}") for group in layout.groups)
        self._views: dict[str, View] = {}
        for buffer, group in zip(self.buffers, layout.groups, strict=True):
            self._views |= group_views(buffer, group, dtype)
        self.ready = 0

    def holding(self, layer: int) -> LayerWeights:
        """The slot's memory, seen as the weights of ``layer``."""
        return LayerWeights(layer, self.buffers, self._views)

    def free(self) -> None:
        """Give the memory back; nothing may be in flight on it. May be called again."""
        for buffer in self.buffers:
            buffer.free()
        self.buffers = ()


def group_views(buffer: Buffer, group: GroupLayout, dtype: torch.dtype) -> dict[str, View]:
    """A view of ``buffer`` for each tensor of ``group``, by the tensor's name."""
    return {place.name: buffer.view(dtype, place.shape, place.offset) for place in group.tensors}
