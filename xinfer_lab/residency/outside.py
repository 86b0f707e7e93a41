"""What a model needs besides its layers: embedding, final norm and head, and where each of them lies."""

from __future__ import annotations

from typing import cast

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.records import Source, View
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import resident_tensors
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.load import Uploader
from xinfer_lab.residency.weights import group_views

__all__ = ["OutsideWeights"]

_EMBEDDING = "model.embed_tokens.weight"


class OutsideWeights:
    """Embedding, final norm and head of a model as views: all in device memory, or the ``embedding`` on the host.

    Of several cards the first has the embedding, and the last, which has no more layers than any other, norm and head.
    A tied embedding is the head too: then all of it lies on the first. ``head_card`` is the number of the head's.

    On the host it lies in an upload heap, pinned, and the embed kernel reads the rows of a pass's tokens over the link:
    in a decode step a single row. Device memory is short where layers stream, and the table has as many bytes as
    several layers. Raises `RequestError` where that is impossible: the head of a tied model is the embedding.
    """

    def __init__(self, device: Device, config: Qwen2Config, *, host_embedding: bool = False) -> None:
        if host_embedding and config.tie_word_embeddings:
            raise RequestError("the embedding of this model is its head too (tied), and has to be in device memory")
        self.device, self.config, self.host_embedding = device, config, host_embedding
        self.head_card = 0 if config.tie_word_embeddings else len(device.nodes) - 1
        embeds = not host_embedding
        parts = {0: resident_tensors(config, embedding=embeds, head=self.head_card == 0)}
        if self.head_card:
            parts[self.head_card] = resident_tensors(config, embedding=False)
        self._parts = [
            (device.nodes[card], device.create_buffer(part.nbytes, on_node(self._called(card), card), node=card), part)
            for card, part in parts.items()
            if part.tensors
        ]
        self.buffers: list[Buffer] = [buffer for _, buffer, _ in self._parts]
        """Of device and host memory, for the caller that frees them."""
        views: dict[str, View] = {}
        for _, buffer, part in self._parts:
            views |= group_views(buffer, part, config.dtype)
        if host_embedding:
            shape = (config.vocab_size, config.hidden_size)
            self._heap = device.create_upload_heap(shape[0] * shape[1] * config.dtype.itemsize, "embedding")
            self.buffers.append(self._heap)
            views[_EMBEDDING] = self._heap.view(config.dtype, shape)
        self.embedding: View = views[_EMBEDDING]
        self.norm: View = views["model.norm.weight"]
        self.head: View = self.embedding if config.tie_word_embeddings else views["lm_head.weight"]

    def load(self) -> None:
        """Bring the weights there, from the device's sources. Blocks the host until they have arrived."""
        for card, buffer, part in self._parts:
            uploader = Uploader(cast(Device, card), max(place.nbytes for place in part.tensors))
            for place in part.tensors:
                uploader.upload(buffer, place.offset, Source(place.name, 0, place.nbytes))
            uploader.finish(buffer)
        if self.host_embedding:
            self._heap.write(0, Source(_EMBEDDING, 0, self._heap.size))

    def _called(self, card: int) -> str:
        """The name of the buffer on ``card``."""
        if not self.head_card:
            return "resident"
        return "outside.head" if card else "outside.embedding"
