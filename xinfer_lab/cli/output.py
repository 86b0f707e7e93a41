"""Writes a command's files completely or not at all, and refuses a bad path before any work is done."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["output_file"]


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """A path to write what shall become ``path``; it is moved there when the block ends well. Raises OSError at once if
    nothing can be written there. What is no regular file (a pipe, a device) is written to directly.
    """
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(21, "is a directory, but a file to write was wanted", str(path))
        with _naming(path):
            yield path
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise type(error)(error.errno, f"cannot be written ({error.strerror})", str(path)) from None
    os.close(handle)
    made = Path(name)
    try:
        with _naming(path):
            yield made
        # mkstemp keeps others out; a result is as readable as any file that the user writes.
        umask = os.umask(0)
        os.umask(umask)
        made.chmod(0o666 & ~umask)
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    # Writing to a file that is open says nothing of its name: "No space left on device", but where?
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, f"cannot be written ({error.strerror})", str(path)) from None
