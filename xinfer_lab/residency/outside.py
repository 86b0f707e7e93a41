"""What a model needs besides its layers: embedding, final norm and head, and where each of them lies."""

from __future__ import annotations

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
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

    On the host it lies in an upload heap, pinned, and the embed kernel reads the rows of a pass's tokens over the link:
    in a decode step a single row. Device memory is short where layers stream, and the table has as many bytes as
    several layers. Raises `RequestError` where that is impossible: the head of a tied model is the embedding.
    """

    def __init__(self, device: Device, config: Qwen2Config, *, host_embedding: bool = False) -> None:
        if host_embedding and config.tie_word_embeddings:
            raise RequestError("the embedding of this model is its head too (tied), and has to be in device memory")
        self.device, self.config, self.host_embedding = device, config, host_embedding
        self._layout = resident_tensors(config, embedding=not host_embedding)
        self._resident = device.create_buffer(self._layout.nbytes, "resident")
        self.buffers: list[Buffer] = [self._resident]
        """Of device and host memory, for the caller that frees them."""
        views = group_views(self._resident, self._layout, config.dtype)
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
        uploader = Uploader(self.device, max(place.nbytes for place in self._layout.tensors))
        for place in self._layout.tensors:
            uploader.upload(self._resident, place.offset, Source(place.name, 0, place.nbytes))
        if self.host_embedding:
            self._heap.write(0, Source(_EMBEDDING, 0, self._heap.size))
        uploader.finish(self._resident)
