"""Put an engine's parts together: a source of layers and of weights that a `QwenModel` runs with.

The machine around the parts is the one that the labs' gates use. A part that is not there, or not passed, is the
course's; `Engine.lent` names those that a run used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.engine.parts import Found, find_parts
from xinfer_lab.labs.lab2.given.one_slot import LayerUploader
from xinfer_lab.labs.lab3.given.ring import streaming_from
from xinfer_lab.labs.lab3.parts import PARTS as RING_PARTS
from xinfer_lab.labs.lab3.parts import neighbours
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layout import LayerLayout, layer_layout
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL, SourceFactory, resident_layers
from xinfer_lab.residency.host import StagedLayers
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.staging import StagingRing
from xinfer_lab.residency.upload import CopyEngine
from xinfer_lab.residency.weights import CheckpointWeights, LayerSlot, ModelWeights

__all__ = ["Engine"]


class Engine:
    """The engine in ``folder``. Raises `RequestError` if there is no such folder, unless all parts may be ``lent``.

    ``parts`` has every part by name. Using the engine notes in ``used`` which parts ran, the student's and lent ones.
    """

    def __init__(self, folder: Path, *, lent: bool = False) -> None:
        if not lent and not folder.is_dir():
            raise RequestError(
                f"there is no engine in {folder}: checks in the labs' notebooks keep your parts in a folder my_engine "
                "beside them"
            )
        self.folder = folder
        self.parts: Mapping[str, Found] = find_parts(folder)
        self.used: dict[str, bool] = {}

    @property
    def lent(self) -> list[str]:
        """The names of those parts that a run used and that are the course's."""
        return [name for name, own in self.used.items() if not own]

    def told(self) -> str:
        """Whose parts ran, as a sentence."""
        if not self.lent:
            return f"All {len(self.used)} parts that ran are yours."
        own = len(self.used) - len(self.lent)
        return f"{own} of the {len(self.used)} parts that ran are yours; lent by the course: {', '.join(self.lent)}."

    def weights(self, checkpoint: Checkpoint) -> ModelWeights:
        """The weights of ``checkpoint``, found by the student's header reader where both its parts are there."""
        if all(self._has(name) for name in ("read_header", "tensor_ranges")):
            return _FoundWeights(checkpoint, self._part("read_header"), self._part("tensor_ranges"))
        return CheckpointWeights(checkpoint)

    def streaming(self, pool: int) -> SourceFactory:
        """Layers stream through ``pool`` slots (at least 2) by the student's parts; all stay where the pool covers
        them."""

        def make(device: Device, weights: ModelWeights) -> LayerSource:
            config = weights.config
            layers, slots = config.num_hidden_layers, max(MIN_POOL, pool)
            if slots >= layers:
                return resident_layers()(device, weights)
            # A ring of Lab 3 or 4 has begin, ensure and release in the class that is built on it.
            source: Any = self._ring_class()(device, layer_layout(config), config.dtype, None, layers, slots)
            return cast(LayerSource, source)

        return make

    def _ring_class(self) -> Any:
        if self._has("streaming_layers"):
            base: Any = self._part("streaming_layers")
        else:
            own = {name: self._part(name) for name in RING_PARTS if self._has(name)}
            base = streaming_from(**{**{name: self._lend(name) for name in RING_PARTS if name not in own}, **own})
        make_engine = self._copy_engine

        class MyStreamingLayers(base):  # type: ignore[misc]
            def make_engine(self, device: Device, layout: LayerLayout, host: object) -> Any:
                return make_engine(device, layout)

        return MyStreamingLayers

    def _copy_engine(self, device: Device, layout: LayerLayout) -> Any:
        # Room for two layers: with less the host, waiting for it, would hold up layers that could be computed.
        if self._has("copy_engine"):
            make_ring = (
                self._part("staging_ring") if self._has("staging_ring") else self._note("staging_ring", StagingRing)
            )
            return _Noting(self._part("copy_engine")(device, make_ring(device, 2 * layout.nbytes), layout))
        self.used |= {"copy_engine": False, "staging_ring": False}
        return CopyEngine(device, StagedLayers(device, layout))

    def _lend(self, name: str) -> Any:
        return self._note(name, neighbours("")[name])

    def _has(self, name: str) -> bool:
        return self.parts[name].is_used

    def _part(self, name: str) -> Any:
        self.used[name] = True
        return self.parts[name].code

    def _note(self, name: str, lent: Any) -> Any:
        self.used[name] = False
        return lent


class _Noting:
    """Lab 2's engine returns the value at which a layer has arrived; Lab 3's rings look for it at the slot."""

    def __init__(self, engine: LayerUploader) -> None:
        self._engine = engine
        self.copied, self.close = engine.copied, engine.close

    def upload(self, layer: int, slot: LayerSlot) -> int:
        slot.ready = self._engine.upload(layer, slot)
        return slot.ready


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
        return self._checkpoint.file_bytes(file)[begin:end]
