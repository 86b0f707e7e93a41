"""Files of a submission, read without following a link: what a link leads to is not what was handed in.

A link is opened with the rights of the account that marks, so it reaches solutions and other students' folders. Each
step of a path is opened from the one above it and may not be a link, so that nothing can be put in its place between a
look and the opening. Where the system cannot do that (Windows), each step is looked at first.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

__all__ = ["LinkRefused", "copy_plain", "is_link", "read_plain"]

_BENEATH = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_REPARSE = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)


class LinkRefused(OSError):
    """A file that was handed in is a link, or lies in a folder that is one, or is no file at all."""


def is_link(path: Path) -> bool:
    """Whether ``path`` itself is a link of any kind, whatever it leads to."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & _REPARSE)


def read_plain(path: Path, most: int, *, depth: int = 0) -> tuple[bytes, int]:
    """The first ``most`` bytes of the file ``path``, and its size. None of the last ``depth`` parts of its path may be
    a link; with 0 links are followed.

    Raises `LinkRefused`, or `OSError` where it is not there or cannot be read. Never waits for a pipe or a device.
    """
    with os.fdopen(_open(path, depth), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return file.read(most), size


def _open(path: Path, depth: int) -> int:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if depth == 0:
        return _only_a_file(os.open(path, flags), path.name)
    above = path.parents[min(depth, len(path.parents)) - 1]
    parts = path.relative_to(above).parts
    for part in range(1, len(parts) + 1):
        if is_link(above.joinpath(*parts[:part])):
            raise LinkRefused(0, f"{parts[part - 1]} is a link; hand in the file itself")
    if not _BENEATH:
        return _only_a_file(os.open(path, flags), path.name)
    folder = os.open(above, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder_name in parts[:-1]:
            inner = os.open(folder_name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _only_a_file(os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder), path.name)
    finally:
        os.close(folder)


def _only_a_file(descriptor: int, name: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LinkRefused(0, "is no file")
    return descriptor


def copy_plain(source: Path, into: Path) -> list[str]:
    """Copy the folder ``source`` to ``into``, which is not there yet; what was left out, a sentence each.

    Left out are links, what is neither file nor folder, and files of another owner than the folder's: a hard link to
    someone else's file is one. Raises `LinkRefused` where ``source`` is a link. Not on Windows.
    """
    if is_link(source):
        raise LinkRefused(0, f"{source.name} is a link")
    left_out, owner = [], source.lstat().st_uid
    for folder, inner, files, descriptor in os.fwalk(source):
        below = Path(folder).relative_to(source)
        (into / below).mkdir(parents=True)
        for name in sorted(inner):
            if stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                left_out.append(f"{below / name} is a link")
        for name in sorted(files):
            try:
                _copy(name, descriptor, into / below / name, owner)
            except OSError as error:
                left_out.append(f"{below / name}: {error.strerror or error}")
    return left_out


def _copy(name: str, folder: int, into: Path, owner: int) -> None:
    try:
        found = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise LinkRefused(0, "is a link") if error.errno == errno.ELOOP else error from None
    with os.fdopen(_only_a_file(found, name), "rb") as file:
        if os.fstat(file.fileno()).st_uid != owner:
            raise LinkRefused(0, "belongs to another account")
        with open(into, "xb") as copy:
            shutil.copyfileobj(file, copy)
