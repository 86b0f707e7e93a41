"""`ExpertSource`: what a layer with experts asks for each expert's weights. One protocol, many residencies.

Layers come in order, experts do not: which of them a layer needs is known once its tokens were routed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source, View
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import expert_layout, expert_tensor_name
from xinfer_lab.residency.load import Uploader
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["ExpertSource", "ExpertWeights", "ExpertsFactory", "ResidentExperts", "expert_layers", "resident_experts"]

ExpertWeights = Mapping[str, View]
"""An expert's three tensors in device memory by their names relative to it."""


class ExpertSource(Protocol):
    """Hands out experts, by layer and number. Nothing here blocks the host unless the class says so."""

    @property
    def uploads(self) -> int:
        """Experts uploaded since the source was made, by running: not what was loaded before the first pass."""
        ...

    @property
    def wants_guesses(self) -> bool:
        """Whether `expect` should be told guesses too."""
        ...

    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """``experts`` of ``layer`` will be asked for in this order; or, unless ``certain``, that is a guess. Copies may
        start."""
        ...

    def ensure(self, layer: int, expert: int) -> ExpertWeights:
        """From here on the direct queue may read this expert's weights, until it is released."""
        ...

    def release(self, layer: int, expert: int) -> None:
        """The direct queue has been given its last read of them, for now."""
        ...

    def ensure_together(self, layer: int, experts: Sequence[int]) -> Sequence[ExpertWeights] | None:
        """As `ensure` for all of ``experts``, which are then used together; None where there is no room for them."""
        ...

    def release_together(self, layer: int, experts: Sequence[int]) -> None:
        """As `release` for what `ensure_together` handed out."""
        ...

    def close(self) -> None:
        """Drain; nothing of it is in flight afterwards, and its memory is given back. May be called again."""
        ...


ExpertsFactory = Callable[[Device, ModelWeights], ExpertSource]
"""Makes the source of a model's experts."""


def expert_layers(config: Qwen2Config) -> tuple[int, ...]:
    """The layers of a model that have experts."""
    return tuple(layer for layer in range(config.num_hidden_layers) if config.has_experts(layer))


class ResidentExperts:
    """All experts in device memory, a buffer for each layer's, uploaded once when created (which blocks the host until
    they have arrived)."""

    wants_guesses = False

    def __init__(self, device: Device, config: Qwen2Config) -> None:
        assert config.experts is not None
        self._device = device
        layout = expert_layout(config)
        self._buffers: list[Buffer] = []
        self._views: dict[tuple[int, int], ExpertWeights] = {}
        uploader = Uploader(device, max(place.nbytes for place in layout.tensors))
        self._whole: dict[int, View] = {}
        count = config.experts.num_experts
        for layer in expert_layers(config):
            buffer = device.create_buffer(count * layout.nbytes, f"experts[{layer}]")
            self._buffers.append(buffer)
            self._whole[layer] = buffer.view(config.dtype, (count, layout.nbytes // config.dtype.itemsize))
            for expert in range(count):
                start = expert * layout.nbytes
                self._views[layer, expert] = {
                    place.name: buffer.view(config.dtype, place.shape, start + place.offset) for place in layout.tensors
                }
                for place in layout.tensors:
                    name = expert_tensor_name(layer, expert, place.name)
                    uploader.upload(buffer, start + place.offset, Source(name, 0, place.nbytes))
        uploader.finish(*self._buffers)

    def whole(self, layer: int) -> View:
        """All experts of ``layer`` in one piece, [E, elements of each]."""
        return self._whole[layer]

    @property
    def uploads(self) -> int:
        """Experts uploaded by running: none."""
        return 0

    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """Nothing to fetch."""

    def ensure(self, layer: int, expert: int) -> ExpertWeights:
        """The expert's own memory; it arrived before the constructor returned."""
        return self._views[layer, expert]

    def release(self, layer: int, expert: int) -> None:
        """Nothing to refill."""

    def ensure_together(self, layer: int, experts: Sequence[int]) -> Sequence[ExpertWeights] | None:
        """Their own memory."""
        return [self._views[layer, expert] for expert in experts]

    def release_together(self, layer: int, experts: Sequence[int]) -> None:
        """Nothing to refill."""

    def close(self) -> None:
        """Block the host until the queues are idle, and give the memory back. May be called again."""
        self._device.wait_idle()
        for buffer in self._buffers:
            buffer.free()
        self._buffers = []


def resident_experts(device: Device, weights: ModelWeights) -> ExpertSource:
    """All experts stay in device memory."""
    return ResidentExperts(device, weights.config)
