"""A safetensors file that exists only as its header: any size, no bytes on disk."""

from __future__ import annotations

import errno
import os

from xinfer_lab.grading.values import Value

__all__ = ["HeaderFile", "ReadTooMuch"]


NOTED = 8
"""Reads that ``requests`` holds."""


class ReadTooMuch(OSError):
    """More was read than the header, which of a file of many GB no reader of headers needs."""


class HeaderFile:
    """An open binary file: n as ``claimed``, ``text``, so many ``spaces``, then zeros up to ``size``. Has ``read``,
    ``seek`` and ``tell``.

    ``requests`` are the first reads, each as (position, bytes asked for). ``asked`` counts the bytes that reads asked
    for; going over ``allowed`` raises `ReadTooMuch` before anything is given out.
    """

    def __init__(self, claimed: int, text: bytes, size: int, longest: int, spaces: int = 0) -> None:
        self._head = (claimed.to_bytes(8, "little") + text)[:size]
        self._size, self._at = size, 0
        self._claimed, self._spaces = claimed, spaces
        self.requests: list[tuple[int, int]] = []
        self.allowed = 8 + (claimed if claimed <= longest else 0)
        self.asked = 0

    @classmethod
    def of(cls, file: dict[str, Value], longest: int) -> HeaderFile:
        """The file that a case describes."""
        return cls(file["claimed"], file["text"], file["size"], longest, file.get("spaces", 0))

    def read(self, count: int | None = -1) -> bytes:
        """The next ``count`` bytes, fewer at the end; without ``count`` all that are left."""
        left = max(0, self._size - self._at)
        count = left if count is None or count < 0 else count
        self.asked += count
        self.requests = [*self.requests, (self._at, count)][:NOTED]
        if self.asked > self.allowed:
            raise ReadTooMuch(
                f"reads asked for {self.asked:,} bytes in all; the file's first 8 bytes say {self._claimed:,}, "
                f"so that {self.allowed:,} bytes are the most to ask for"
            )
        taken = min(count, left)
        piece = self._head[self._at : self._at + taken]
        self._at += taken
        spaces_end = len(self._head) + self._spaces
        return piece.ljust(min(taken, spaces_end - self._at + taken), b" ").ljust(taken, b"\0")

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to ``offset`` from the start, from here or from the end; the new position. As an open file, it raises
        OSError for a place before the first byte."""
        place = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence] + offset
        if place < 0:
            raise OSError(errno.EINVAL, f"there is no place {place}: a file begins at 0")
        self._at = place
        return self._at

    def tell(self) -> int:
        """The position, in bytes from the start."""
        return self._at
