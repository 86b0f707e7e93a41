"""Traces where each byte of a layer's weights came from, from the stream alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from xinfer_lab.device.records import Allocate, Copy, Dispatch, HostWrite, Record, Span

__all__ = ["Compute", "Provenance", "Upload", "read_provenance"]

_LAYER = re.compile(r"^model\.layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Upload:
    """Record ``record`` copied ``weight_bytes`` bytes of layer ``layer``'s weights from an upload heap to ``dst`` on
    ``queue``."""

    record: int
    queue: str
    layer: int
    dst: Span
    weight_bytes: int


@dataclass(frozen=True, slots=True)
class Compute:
    """Record ``record`` is the ``step``-th decoder layer that was computed (from 0), on ``queue``.

    ``layers`` are the layers whose weights its operands held, by the newest upload before it in the stream: one if
    all is right, empty where nothing was uploaded. ``uploads`` are those uploads' records.
    """

    record: int
    queue: str
    step: int
    layers: tuple[int, ...]
    uploads: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """The uploads and computations of a stream in order of issue."""

    uploads: tuple[Upload, ...]
    computes: tuple[Compute, ...]

    def uploads_of(self, step: int) -> tuple[Upload, ...]:
        """The uploads that the ``step``-th computed layer used."""
        wanted = set(self.computes[step].uploads)
        return tuple(upload for upload in self.uploads if upload.record in wanted)

    def unused(self) -> tuple[Upload, ...]:
        """Uploads that no computed layer used."""
        used = {record for compute in self.computes for record in compute.uploads}
        return tuple(upload for upload in self.uploads if upload.record not in used)


class _Contents:
    """What lies where: disjoint spans of each buffer with what was put there last."""

    def __init__(self) -> None:
        self._by_buffer: dict[str, list[tuple[Span, object]]] = {}

    def put(self, span: Span, what: object) -> None:
        kept: list[tuple[Span, object]] = []
        for old, label in self._by_buffer.get(span.buffer, []):
            if not old.overlaps(span):
                kept.append((old, label))
                continue
            if old.offset < span.offset:
                kept.append((Span(old.buffer, old.offset, span.offset - old.offset), label))
            if span.end < old.end:
                kept.append((Span(old.buffer, span.end, old.end - span.end), label))
        self._by_buffer[span.buffer] = [*kept, (span, what)]

    def clear(self, buffer: str) -> None:
        """``buffer`` is new: nothing lies in it."""
        self._by_buffer.pop(buffer, None)

    def move(self, dst: Span, src: Span) -> None:
        """What lies in ``src`` lies in ``dst`` too."""
        found = self.at(src)
        self.put(dst, None)
        for old, what in found:
            start, end = max(old.offset, src.offset), min(old.end, src.end)
            self.put(Span(dst.buffer, dst.offset + start - src.offset, end - start), what)

    def at(self, span: Span) -> list[tuple[Span, object]]:
        """What overlaps ``span``."""
        return [(old, what) for old, what in self._by_buffer.get(span.buffer, []) if old.overlaps(span)]


def read_provenance(records: Iterable[Record]) -> Provenance:
    """The program that ``records`` are. A copy within device memory moves what was uploaded; the upload stays the one
    that brought it."""
    contents = _Contents()
    uploads: list[Upload] = []
    computes: list[Compute] = []
    for index, record in enumerate(records):
        match record:
            case Allocate():
                contents.clear(record.buffer)
                if record.mapped:
                    contents.put(Span(record.buffer, 0, record.size), record.mapped)
            case HostWrite():
                contents.put(record.dst, record.source.name)
            case Copy():
                pieces = _weights(record, contents)
                upload = _upload(index, record, pieces)
                if upload is None:
                    contents.move(record.dst, record.src)
                    continue
                uploads.append(upload)
                contents.put(record.dst, None)
                for span, layer in pieces:
                    contents.put(span, (layer, index))
            case Dispatch(kernel="decoder_layer"):
                computes.append(_compute(index, record, contents, len(computes)))
    return Provenance(tuple(uploads), tuple(computes))


def _weights(record: Copy, contents: _Contents) -> list[tuple[Span, int]]:
    """Where ``record`` puts which layer's weights, the newest in the heap last. What nobody wrote, and what is no
    weight, is left out."""
    pieces = []
    for span, name in contents.at(record.src):
        if isinstance(name, str) and (match := _LAYER.match(name)) is not None:
            start, end = max(span.offset, record.src.offset), min(span.end, record.src.end)
            there = Span(record.dst.buffer, record.dst.offset + start - record.src.offset, end - start)
            pieces.append((there, int(match.group(1))))
    return pieces


def _upload(index: int, record: Copy, pieces: list[tuple[Span, int]]) -> Upload | None:
    """The upload that a copy of ``pieces`` is: of the layer that was staged last. Between tensors older bytes may be
    left."""
    if not pieces:
        return None
    layer = pieces[-1][1]
    return Upload(index, record.queue, layer, record.dst, sum(span.size for span, of in pieces if of == layer))


def _compute(index: int, record: Dispatch, device: _Contents, step: int) -> Compute:
    layers: dict[int, None] = {}
    used: dict[int, None] = {}
    for name, view in record.operands.items():
        if name.startswith(("self_attn.", "mlp.", "input_layernorm", "post_attention_layernorm")):
            for _, content in device.at(view.span):
                if isinstance(content, tuple):
                    layers[content[0]] = None
                    used[content[1]] = None
    position = record.params.get("position")
    return Compute(index, record.queue, step, tuple(layers), tuple(used), position if isinstance(position, int) else -1)
