"""One dispatch on operands with guard bands between them, and a witness of the bytes that its operations touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from xinfer_lab.device.kernels import Kernel, Params
from xinfer_lab.device.records import Span, View
from xinfer_lab.device.tensors import aligned_bytes, slice_view

GUARD = 512
"""Bytes between operands that nobody may touch."""


@dataclass(frozen=True)
class Case:
    """One dispatch: all operands lie in one buffer, with guard bands between them."""

    name: str
    kernel: Kernel
    operands: Mapping[str, View]
    params: Params
    size: int

    def __str__(self) -> str:
        return self.name


def place(shapes: Mapping[str, tuple[tuple[int, ...], str]]) -> tuple[dict[str, View], int]:
    """Views of these (shape, dtype)s, each at a multiple of 256 bytes."""
    views, offset = {}, GUARD
    for name, (shape, dtype) in shapes.items():
        views[name] = View("arena", offset, shape, dtype)
        offset += -(-(views[name].nbytes + GUARD) // 256) * 256
    return views, offset


def mask(size: int, spans: Iterable[Span]) -> torch.Tensor:
    """True for the bytes of ``spans``."""
    marked = torch.zeros(size, dtype=torch.bool)
    for span in spans:
        assert span.buffer == "arena" and 0 <= span.offset < span.end <= size
        marked[span.offset : span.end] = True
    return marked


def declared(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes declared as read, and as written."""
    case.kernel.check(case.operands, case.params)
    access = case.kernel.access(case.operands, case.params)
    return mask(case.size, access.reads), mask(case.size, access.writes)


def run(case: Case, arena: torch.Tensor) -> torch.Tensor:
    """What the arena holds afterwards; ``arena`` itself is left as it is."""
    after = aligned_bytes(case.size)
    after.copy_(arena)
    with torch.inference_mode():
        case.kernel.run({name: slice_view({"arena": after}, view) for name, view in case.operands.items()}, case.params)
    return after


OVERWRITING = ("aten::copy_", "aten::fill_", "aten::zero_")


class Watcher(TorchDispatchMode):
    """Marks the bytes of one storage that operations read and write. Views touch nothing."""

    def __init__(self, arena: torch.Tensor) -> None:
        super().__init__()
        self._pointer = arena.untyped_storage().data_ptr()
        self._size = arena.untyped_storage().nbytes()
        self._start = arena.storage_offset()
        self.reads = np.zeros(self._size, dtype=bool)
        self.writes = np.zeros(self._size, dtype=bool)
        self.operations: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        if not (func.is_view and self._shares(made, args)):
            self.operations.append(str(func))
            for argument, given in self._bound(func, args, kwargs):
                written = argument.alias_info is not None and argument.alias_info.is_write
                only_written = written and (argument.is_out or func._schema.name in OVERWRITING)
                for tensor in given:
                    if written:
                        self._mark(self.writes, tensor)
                    if not only_written:
                        self._mark(self.reads, tensor)
        return made

    @staticmethod
    def _shares(made: Any, args: Any) -> bool:
        """Whether a view was made, not a copy: reshape and conversions make the one or the other."""
        results = made if isinstance(made, (list, tuple)) else [made]
        pointers = {arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)}
        return all(result.untyped_storage().data_ptr() in pointers for result in results)

    @staticmethod
    def _bound(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, list[torch.Tensor]]]:
        for position, argument in enumerate(func._schema.arguments):
            given = kwargs.get(argument.name, args[position] if position < len(args) else None)
            items = given if isinstance(given, (list, tuple)) else [given]
            yield argument, [item for item in items if isinstance(item, torch.Tensor)]

    def _mark(self, marks: np.ndarray, tensor: torch.Tensor) -> None:
        if tensor.untyped_storage().data_ptr() != self._pointer or tensor.numel() == 0:
            return
        size = tensor.itemsize
        # One mark for each byte of each element, by the same strides.
        view = np.lib.stride_tricks.as_strided(
            marks[tensor.storage_offset() * size :],
            (*tensor.shape, size),
            (*(stride * size for stride in tensor.stride()), 1),
        )
        view[...] = True

    def seen(self, marks: np.ndarray) -> torch.Tensor:
        """The marks of the arena alone."""
        return torch.from_numpy(marks[self._start :].copy())
