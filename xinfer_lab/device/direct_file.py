"""Reads of a file that go to the disk each time: past the system's file cache, and with no read-ahead.

A file that was read a moment ago lies in the cache, and so does one that was just written. A second pass over its
layers would then measure memory, not the disk. Linux reads past the cache with O_DIRECT where the file system takes it;
macOS with F_NOCACHE. Elsewhere the cache stays in the way, and `DirectFile.how` says so.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from pathlib import Path

import numpy as np
import torch

from xinfer_lab.device.errors import StreamError

__all__ = ["DirectFile"]

_BLOCK = 4096
"""O_DIRECT wants offset, size and address at multiples of the device's block; this is one for every disk in use."""
_CHUNK = 2**22
"""Bytes of one read: past this size larger ones are no faster."""
_F_RDAHEAD, _F_NOCACHE = 45, 48
"""macOS's fcntl commands; Python's fcntl module names the second only."""


class DirectFile:
    """The file ``path``, open for `read_into`. Threads may read at the same time.

    ``direct``: whether reads go past the file cache. ``how`` says in words what this system and file system allow.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._buffers = threading.local()
        self._fd, self.direct, self.how = _open(path)
        self.size = os.fstat(self._fd).st_size

    def read_into(self, dst: torch.Tensor, offset: int) -> None:
        """Fill ``dst`` (1-D uint8) with the file's bytes from ``offset`` on; blocks, without the interpreter's lock.

        Raises `StreamError` where the file ends before that.
        """
        target, done = dst.numpy(), 0
        while done < len(target):
            begin = offset + done
            skip = begin % _BLOCK
            chunk = self._chunk()
            wanted = -(-min(skip + len(target) - done, _CHUNK) // _BLOCK) * _BLOCK
            got = _read_at(self._fd, memoryview(chunk)[:wanted], begin - skip) - skip
            if got <= 0:
                raise StreamError(
                    f"{self.path} ends at byte {self.size}; bytes up to {offset + len(target)} were asked for"
                )
            taken = min(got, len(target) - done)
            np.copyto(target[done : done + taken], np.frombuffer(chunk, np.uint8, taken, skip))
            done += taken
        self._forget(offset, len(target))

    def _chunk(self) -> mmap.mmap:
        # A map of its own begins at a page, as O_DIRECT wants it.
        if not hasattr(self._buffers, "chunk"):
            self._buffers.chunk = mmap.mmap(-1, _CHUNK)
        chunk: mmap.mmap = self._buffers.chunk
        return chunk

    def _forget(self, offset: int, size: int) -> None:
        if not self.direct and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open(path: Path) -> tuple[int, bool, str]:
    if hasattr(os, "O_DIRECT"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            fd = -1
        if fd >= 0:
            if _reads(fd):
                return fd, True, "read past the file cache (O_DIRECT), with no read-ahead"
            os.close(fd)
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, _F_NOCACHE, 1)
        fcntl.fcntl(fd, _F_RDAHEAD, 0)
        return fd, True, "read past the file cache (F_NOCACHE), with no read-ahead"
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return fd, False, "read through the file cache, which is asked to forget: this file system has no O_DIRECT"
    return fd, False, "read through the file cache: this system has no way around it, so a second read may be faster"


def _reads(fd: int) -> bool:
    """Whether the file system does what it let us open: some refuse the first read."""
    if not os.fstat(fd).st_size:
        return True
    with mmap.mmap(-1, _BLOCK) as block:
        try:
            return _read_at(fd, memoryview(block), 0) > 0
        except OSError:
            return False


_seek_and_read = threading.Lock()


def _read_at(fd: int, buffer: memoryview, offset: int) -> int:
    """Read into ``buffer`` from ``offset`` on; how many bytes there were."""
    if hasattr(os, "preadv"):
        return os.preadv(fd, [buffer], offset)
    # Windows has one position for all who read a file.
    with _seek_and_read:
        os.lseek(fd, offset, os.SEEK_SET)
        data = os.read(fd, len(buffer))
    buffer[: len(data)] = data
    return len(data)
