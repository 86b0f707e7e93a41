"""Finds the source line that asked for a command: the first one outside of the device package."""

from __future__ import annotations

import contextlib
import functools
import os
import sys

from xinfer_lab.device.records import MAX_TEXT

__all__ = ["caller"]

_HERE = os.path.dirname(os.path.abspath(__file__))


@functools.cache
def _is_internal(filename: str) -> bool:
    # What leaves a `with` block passes through contextlib, which is not a line of the program.
    return os.path.dirname(os.path.abspath(filename)) == _HERE or filename == contextlib.__file__


def caller() -> str:
    """``file:line`` of the innermost frame outside of the device package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"[-MAX_TEXT:]
