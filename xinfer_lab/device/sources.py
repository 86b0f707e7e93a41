"""Named sources of bytes for host writes, so that a command stream need not carry them.

A stream names weights instead of holding them. So it is small enough to be stored for every answer, and the verifier
supplies the bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch

from xinfer_lab.device.arguments import plain_name
from xinfer_lab.device.errors import BufferRangeError, StreamError
from xinfer_lab.device.records import Source

__all__ = ["ByteProvider", "Sources", "as_bytes"]


class ByteProvider(Protocol):
    """Something that holds named byte arrays: a checkpoint, a side file, sizes alone."""

    def nbytes(self, name: str) -> int | None:
        """Size in bytes of the array ``name``, or None if it is not held here."""
        ...

    def bytes(self, name: str) -> torch.Tensor:
        """The array as a 1-D uint8 tensor (a view where possible)."""
        ...


def as_bytes(data: torch.Tensor | bytes | bytearray) -> torch.Tensor:
    """``data`` as a 1-D uint8 host tensor; a view for contiguous tensors. Raises TypeError for anything else."""
    if not isinstance(data, (torch.Tensor, bytes, bytearray)):
        raise TypeError(f"bytes come from a tensor or from bytes, not from {type(data).__name__}")
    if isinstance(data, torch.Tensor):
        return data.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return (
        torch.frombuffer(bytearray(data), dtype=torch.uint8)
        if data
        else torch.empty(0, dtype=torch.uint8, device="cpu")
    )


class Sources:
    """Small inputs (kept here) and mounted providers, looked up by name. Inputs come first."""

    def __init__(self) -> None:
        self.inputs: dict[str, bytes] = {}
        self._providers: list[ByteProvider] = []

    def mount(self, provider: ByteProvider) -> None:
        """Look names up in ``provider`` too. Mounting the same provider again changes nothing."""
        if not any(known is provider for known in self._providers):
            self._providers.append(provider)

    def unmount(self, provider: ByteProvider) -> None:
        """Stop looking names up in ``provider``. Nothing happens if it is not mounted."""
        self._providers = [known for known in self._providers if known is not provider]

    def put(self, name: str, data: torch.Tensor | bytes) -> Source:
        """Keep ``data`` as the input ``name`` and return all of it as a source. The same name must keep its bytes."""
        raw = as_bytes(data).numpy().tobytes()
        plain_name(name, "an input")
        if self.inputs.setdefault(name, raw) != raw:
            raise StreamError(f"the input {name!r} has other bytes already; give each input a name of its own")
        return Source(name, 0, len(raw))

    def whole(self, name: str) -> Source:
        """All bytes of the source ``name``. Raises `StreamError` if there is none."""
        return Source(name, 0, self._size(name))

    def check(self, source: Source) -> None:
        """Raise unless ``source`` exists and its range lies inside."""
        size = self._size(source.name)
        if source.offset < 0 or source.size < 0 or source.offset + source.size > size:
            raise BufferRangeError(
                f"bytes {source.offset} to {source.offset + source.size} of the source {source.name!r} were asked for, "
                f"which has {size}"
            )

    def read(self, source: Source) -> torch.Tensor:
        """The bytes of ``source``, 1-D uint8."""
        self.check(source)
        if (data := self.inputs.get(source.name)) is not None:
            whole = as_bytes(data)
        else:
            whole = next(p for p in self._providers if p.nbytes(source.name) is not None).bytes(source.name)
        return whole[source.offset : source.offset + source.size]

    def file_of(self, name: str) -> Path | None:
        """The file whose bytes the source ``name`` is, from first to last; None where it is not a whole file."""
        found = (getattr(provider, "file_of", lambda _: None)(name) for provider in self._providers)
        return next((path for path in found if path is not None), None)

    def _size(self, name: str) -> int:
        if (data := self.inputs.get(name)) is not None:
            return len(data)
        for provider in self._providers:
            if (size := provider.nbytes(name)) is not None:
                return size
        raise StreamError(f"no source is named {name!r}: mount the checkpoint that holds it, or put it as an input")
