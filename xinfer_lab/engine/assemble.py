"""Put an engine's parts together: a source of layers and of weights that a `QwenModel` runs with.

The machine around the parts is the one that the labs' gates use. A part that is not there, or not passed, is the
course's; `Engine.lent` names those that a run used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.engine.fitted import fitted
from xinfer_lab.engine.loading import PartError, blaming
from xinfer_lab.engine.parts import Choice, find_parts
from xinfer_lab.labs.lab3.given.ring import streaming_from
from xinfer_lab.labs.lab3.parts import PARTS as RING_PARTS
from xinfer_lab.labs.lab3.parts import neighbours
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL, SourceFactory, resident_layers
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import CheckpointWeights, LayerWeights, ModelWeights

__all__ = ["Engine"]


class Engine(Choice):
    """The engine in ``folder``. Raises `RequestError` if there is no such folder, unless all parts may be ``lent``;
    then it may be None too.

    ``parts`` has every part by name. Using the engine notes in ``used`` which parts ran, the student's and lent ones.
    Where one of the student's fails as it runs, or is to run and cannot, `PartError` names it; what cannot run is lent
    where all parts may be.
    """

    def __init__(self, folder: Path | None, *, lent: bool = False) -> None:
        if not lent and (folder is None or not folder.is_dir()):
            raise RequestError(
                f"there is no engine in {folder}: checks in the labs' notebooks keep your parts in a folder my_engine "
                "beside them"
            )
        self._lends_all = lent
        super().__init__(find_parts(folder))

    def has(self, name: str) -> bool:
        """Whether the part ``name`` is the student's. Raises `PartError` where it is, and cannot be used."""
        found = self.parts[name]
        if found.status == "broken" and not self._lends_all:
            raise PartError(f"{found.note} Mend it, or delete the file: then the course lends {name}.")
        return super().has(name)

    def weights(self, checkpoint: Checkpoint) -> ModelWeights:
        """The weights of ``checkpoint``, found by the student's header reader where both its parts are there."""
        if all(self.has(name) for name in ("read_header", "tensor_ranges")):
            read_header, tensor_ranges = (self.take(name, dict) for name in ("read_header", "tensor_ranges"))
            with blaming("reading of the checkpoint's headers"):
                return _FoundWeights(checkpoint, read_header, tensor_ranges)
        return CheckpointWeights(checkpoint)

    def streaming(self, pool: int) -> SourceFactory:
        """Layers stream through ``pool`` slots (at least 2) by the student's parts; all stay where the pool covers
        them."""

        def make(device: Device, weights: ModelWeights) -> LayerSource:
            config = weights.config
            layers, slots = config.num_hidden_layers, max(MIN_POOL, pool)
            if slots >= layers:
                return resident_layers()(device, weights)
            with blaming("making"):
                # A ring of Lab 3 or 4 has begin, ensure and release in the class that is built on it.
                ring: Any = _told(fitted(self._ring_class(), self))
                return cast(LayerSource, ring(device, layer_layout(config), config.dtype, None, layers, slots))

        return make

    def _ring_class(self) -> Any:
        if self.has("streaming_layers"):
            return self.take("streaming_layers", object)
        lent = neighbours("")
        return streaming_from(**{name: self.take(name, partial(lent.__getitem__, name)) for name in RING_PARTS})


def _told(ring: Any) -> Any:
    """A class below ``ring`` whose errors name the part that they came from."""

    class MyStreamingLayers(ring):  # type: ignore[misc]
        def begin(self, steps: int) -> None:
            with blaming("begin"):
                super().begin(steps)

        def ensure(self, layer: int) -> LayerWeights:
            with blaming("ensure"):
                return cast(LayerWeights, super().ensure(layer))

        def release(self, layer: int) -> None:
            with blaming("release"):
                super().release(layer)

        def close(self) -> None:
            with blaming("close"):
                super().close()

    return MyStreamingLayers


class _FoundWeights(CheckpointWeights):
    """Tensors where the student's reader of headers finds them in the checkpoint's files."""

    def __init__(
        self, checkpoint: Checkpoint, read_header: Callable[..., Any], tensor_ranges: Callable[..., Any]
    ) -> None:
        super().__init__(checkpoint)
        self._places: dict[str, tuple[str, int, int]] = {}
        for name, path in checkpoint.files().items():
            with path.open("rb") as file:
                header, data_start = read_header(file)
            for tensor, (begin, end) in tensor_ranges(header, data_start, path.stat().st_size).items():
                self._places[tensor] = (name, begin, end)

    def bytes(self, name: str) -> torch.Tensor:
        """The bytes of the tensor ``name``, a view of the memory map."""
        if name not in self._places:
            return super().bytes(name)
        file, begin, end = self._places[name]
        if end - begin != self.nbytes(name) or begin < 0:
            raise PartError(
                f"tensor_ranges.py places {name} at bytes {begin} to {end}, but it has {self.nbytes(name)} bytes."
            )
        return self._checkpoint.file_bytes(file)[begin:end]
