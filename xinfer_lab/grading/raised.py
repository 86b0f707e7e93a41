"""Who raised an exception: a `raise` of the answer, a library, or Python itself in one of the answer's lines.

A refusal is what an answer raises by a `raise` of its own. A list that lacks the item, a deque that changed while it
was walked, a stack that is full: those are accidents, though their classes may be the ones that were asked for.
"""

from __future__ import annotations

import contextlib
import dis
import os
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

__all__ = ["ANSWER", "Origin", "is_own", "origin_of"]

ANSWER = "answer"
"""In place of a module's name: the answer's own code."""
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(
    {
        str(Path(contextlib.__file__).parent) + os.sep,
        *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)


@dataclass(frozen=True, slots=True)
class Origin:
    """``by`` is `ANSWER` or the name of a module; ``stated`` says whether a `raise` statement did it.

    `ANSWER` and not ``stated``: Python itself raised it in a line of the answer's.
    """

    by: str
    stated: bool

    @property
    def refuses(self) -> bool:
        """Whether it is a refusal: a `raise` of the answer's own."""
        return self.stated and self.by == ANSWER


def is_own(filename: str) -> bool:
    """Whether code in ``filename`` is a student's: neither this package's nor a library's."""
    return not filename.startswith((_PACKAGE, "<frozen", *_LIBRARIES))


def origin_of(error: BaseException) -> Origin:
    """Who raised ``error``, by its traceback. What was never raised is this package's."""
    step, innermost = error.__traceback__, None
    while step is not None:
        if is_own(step.tb_frame.f_code.co_filename) and _is_statement(step):
            return Origin(ANSWER, True)
        step, innermost = step.tb_next, step
    if innermost is None:
        return Origin("xinfer_lab.grading", True)
    return Origin(_module(innermost.tb_frame), _is_statement(innermost))


def _is_statement(step: TracebackType) -> bool:
    return dis.opname[step.tb_frame.f_code.co_code[step.tb_lasti]] == "RAISE_VARARGS"


def _module(frame: FrameType) -> str:
    if is_own(frame.f_code.co_filename):
        return ANSWER
    return str(frame.f_globals.get("__name__", "?"))[:200]
