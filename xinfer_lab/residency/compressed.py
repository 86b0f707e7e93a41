"""`CompressedLayers`: layers cross the link and wait in device memory in their coded form, decoded just before use."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandList
from xinfer_lab.device.records import Span, View
from xinfer_lab.qwen2.layout import GroupLayout, LayerLayout, TensorPlace
from xinfer_lab.residency.codec.encoded import EncodedWeights
from xinfer_lab.residency.codec.kernel import DECODE_EXPONENTS, decode_operands, decode_params
from xinfer_lab.residency.encoded_host import encoded_source
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.kept import KeptLists
from xinfer_lab.residency.load import Uploader
from xinfer_lab.residency.relay import Relay
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.streaming import StreamingLayers
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["CompressedLayers"]

_Work = tuple[list[tuple[View, Span]], list[tuple[dict[str, int], dict[str, View]]]]
"""Copies of what was not coded, as destination and source; and dispatches, as parameters and operands."""


class CompressedLayers:
    """Layers in their coded form: ``streamed`` (in growing order) pass through ``pool`` slots, all others stay.

    `StreamingLayers` moves the coded bytes. The direct queue decodes each layer into one plain slot just before it
    computes with it, and a coded slot is free as soon as its layer has been decoded: the copy of the next layers goes
    on during both. One plain slot is enough, since whatever reads and writes it is in the order of one queue. ``host``
    stages the streamed layers by their place in that list (None if there are none); ``encoded`` is mounted on the
    device already, and `close` unmounts it. ``numbers``: what the layers are called in ``encoded``, where they are some
    of a model's; ``relay``: how one of the streamed ones comes over other links too.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        dtype: torch.dtype,
        encoded: EncodedWeights,
        host: HostLayers | None,
        streamed: Sequence[int],
        pool: int,
        numbers: Sequence[int] | None = None,
        relay: Relay | None = None,
    ) -> None:
        self._numbers = range(len(encoded.layers)) if numbers is None else numbers
        layers = len(self._numbers)
        if list(streamed) != sorted(set(streamed)) or not all(0 <= layer < layers for layer in streamed):
            raise ValueError(f"streamed layers are some of 0 to {layers - 1} in growing order, not {list(streamed)}")
        if bool(streamed) != (host is not None):
            raise ValueError("streamed layers need a host that stages them, and only they")
        self._device, self._encoded = device, encoded
        self._order = LayerOrder(layers)
        self._place = {layer: place for place, layer in enumerate(streamed)}
        self._streaming: StreamingLayers | None = None
        self._lists = KeptLists(device.direct_queue)
        self._plain = LayerSlot(device, "plain", layout, dtype)
        self._resident = self._load([layer for layer in range(layers) if layer not in self._place])
        if host is not None:
            called = [self._numbers[layer] for layer in streamed]
            one = _coded_layout(max(encoded.layers[layer].nbytes for layer in called))
            self._streaming = StreamingLayers(device, one, torch.uint8, host, len(streamed), pool, called, relay)

    def _load(self, layers: Sequence[int]) -> dict[int, Buffer]:
        if not layers:
            return {}
        sources = {layer: encoded_source(self._encoded, self._numbers[layer]) for layer in layers}
        uploader = Uploader(self._device, max(source.size for source in sources.values()))
        buffers = {}
        for layer, source in sources.items():
            buffers[layer] = self._device.create_buffer(source.size, f"encoded[{self._numbers[layer]}]")
            uploader.upload(buffers[layer], 0, source)
        uploader.finish(*buffers.values())
        return buffers

    @property
    def uploads(self) -> int:
        """Layers uploaded by running; those that stay are not counted."""
        return self._streaming.uploads if self._streaming is not None else 0

    def begin(self, steps: int) -> None:
        """Announce ``steps`` passes; fills the slots that are free."""
        self._order.begin(steps)
        if self._streaming is not None:
            self._streaming.begin(steps)

    def ensure(self, layer: int) -> LayerWeights:
        """The direct queue decodes the layer, after waiting for its copy if it streams; then its slot is refilled."""
        self._order.ensure(layer)
        if (buffer := self._resident.get(layer)) is not None:
            self._decode(layer, buffer)
        else:
            assert self._streaming is not None
            place = self._place[layer]
            self._decode(layer, self._streaming.ensure(place).buffers[0])
            self._streaming.release(place)
        return self._plain.holding(layer)

    def release(self, layer: int) -> None:
        """Nothing to refill: the coded slot went on when its layer had been decoded."""
        self._order.release(layer)

    def _decode(self, layer: int, buffer: Buffer) -> None:
        def fill(commands: CommandList) -> None:
            copies, dispatches = self._prepare(layer, buffer)
            # Copies first: a buffer goes from being copied to to being written by kernels once, not to and fro.
            for out, span in copies:
                commands.copy(out, span)
            for params, operands in dispatches:
                commands.dispatch(DECODE_EXPONENTS.name, params=params, **operands)  # type: ignore[arg-type]

        self._lists.run((layer, buffer.name), f"decode layer {self._numbers[layer]}", fill)

    def _prepare(self, layer: int, buffer: Buffer) -> _Work:
        """What decoding ``layer`` out of ``buffer`` takes: the same in every pass."""
        copies, dispatches = [], []
        views = self._plain.holding(layer).views
        for tensor in self._encoded.layers[self._numbers[layer]].tensors:
            out = views[tensor.name]
            if tensor.coding is None:
                copies.append((out, buffer.span(tensor.offset, tensor.nbytes)))
            else:
                operands = decode_operands(tensor.coding, buffer.name, tensor.offset, out)
                dispatches.append((decode_params(tensor.coding), operands))
        return copies, dispatches

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        if self._streaming is not None:
            self._streaming.close()
        self._device.wait_idle()
        self._lists.clear()
        for buffer in self._resident.values():
            buffer.free()
        self._resident = {}
        self._plain.free()
        self._device.sources.unmount(self._encoded)


def _coded_layout(size: int) -> LayerLayout:
    """A layer in its coded form, as a slot sees it: one range of bytes."""
    return LayerLayout((GroupLayout("encoded", (TensorPlace("encoded", (size,), 0, size),), size),))
