"""JSON files of a checkpoint, and what often lies in the place of any of its files: a pointer of Git LFS."""

import json
from pathlib import Path
from typing import Any

from xinfer_lab.qwen2.errors import ModelFileError

__all__ = ["POINTER", "is_pointer", "read_json"]

POINTER = "only a Git LFS pointer to the file, not the file itself (fetch it with git lfs pull, or download it again)"
"""How a message ends that tells of one."""

_POINTER_BEGINS = b"version https://git-lfs"


def is_pointer(start: bytes) -> bool:
    """Whether a file that begins so is a pointer of Git LFS: what a clone without LFS leaves instead of large files."""
    return start.startswith(_POINTER_BEGINS)


def read_json(file: Path, error: type[ModelFileError]) -> Any:
    """What the file holds. Raises `error` for one that is no JSON."""
    content = file.read_bytes()
    if is_pointer(content):
        raise error(f"{file}: {POINTER}")
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as reason:
        raise error(f"{file}: not valid JSON ({reason})") from None
