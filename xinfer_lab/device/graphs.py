"""CUDA graphs behind kept command lists: captured once, replayed for each execution.

A list that is executed again does the same work on the same addresses, but for parameters that its kernels let vary:
those are read from cells of device memory, which a small launch before the replay fills. All graphs share one pool of
memory for what their kernels need in between, since they run one after another on one stream. The pool and the graphs
themselves are counted from the start (`GRAPH_MEMORY`); once that is spent, further lists run uncaptured.
"""

from __future__ import annotations

import functools
import importlib.util
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.queue import KeptCall
from xinfer_lab.device.records import Copy, Dispatch, Record, Scalar, Transition, View

__all__ = [
    "GRAPH_MEMORY",
    "MOST_GRAPHS",
    "RECORDED_LISTS",
    "Graphs",
    "OnStream",
    "RecordedGraph",
    "has_triton",
]

RECORDED_LISTS = "recorded command lists"
"""The holder of what graphs take of device memory."""

MOST_GRAPHS = 256
"""Graphs that may live at one time: a coded model of 80 layers has two for each, and a few for the rest of a pass."""

GRAPH_MEMORY = 4 * 2**20 + MOST_GRAPHS * 2**17
"""Bytes that are counted for them: a pool that they share, and 128 KiB each. Measured on an H200, driver 580: 62 MiB
for 502 graphs of a layer, and 2 MiB of pool."""


@functools.cache
def has_triton() -> bool:
    """Whether Triton can be imported here: without it no kernel of the package can be captured."""
    return importlib.util.find_spec("triton") is not None


class OnStream:
    """Makes ``stream`` the current one inside of a ``with`` block, which may be entered again and again.

    `torch.cuda.StreamContext` does the same, and takes as long for it as the replay of a graph.
    """

    __slots__ = ("_before", "_stream")

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = _number_of(stream)
        self._before: list[tuple[int, tuple[int, int, int]]] = []

    def __enter__(self) -> None:
        # Making a stream current makes its card current too, and each card has a current stream.
        self._before.append((torch._C._cuda_getDevice(), torch._C._cuda_getCurrentStream(self._stream[1])))
        _make_current(self._stream)

    def __exit__(self, *_: object) -> None:
        card, stream = self._before.pop()
        _make_current(stream)
        if card != stream[1]:
            torch._C._cuda_setDevice(card)


def _number_of(stream: torch.cuda.Stream) -> tuple[int, int, int]:
    return stream.stream_id, stream.device_index, stream.device_type


def _make_current(stream: tuple[int, int, int]) -> None:
    torch._C._cuda_setStream(stream_id=stream[0], device_index=stream[1], device_type=stream[2])


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """A captured list of ``queue``; ``cells``: varying parameters, and the number of a record that has each."""

    queue: str
    graph: torch.cuda.CUDAGraph
    cells: tuple[tuple[str, int], ...]


_Work = tuple[int, Copy | Dispatch, Callable[..., None]]
"""A record's number in its list, the record, and what carries it out: given the parameters, if it is a dispatch."""


class Graphs:
    """The graphs of one card's direct ``queue``, whose ``stream`` they are captured on and replayed on."""

    def __init__(self, kernels: KernelTable, queue: str, stream: torch.cuda.Stream) -> None:
        self._kernels, self._queue, self._on = kernels, queue, OnStream(stream)
        self._pool: Any = None
        self._cells: dict[str, torch.Tensor] = {}
        self._values: dict[str, object] = {}
        self._device = stream.device
        self._warm: set[object] = set()
        self._living: weakref.WeakSet[KeptCall] = weakref.WeakSet()
        self.captured = 0
        """Graphs captured so far."""

    @property
    def living(self) -> int:
        """Graphs that can be replayed now."""
        return len(self._living)

    def compile(
        self,
        records: Sequence[Record],
        kept: KeptCall,
        operand: Callable[[View], torch.Tensor],
        copy: Callable[[Copy], None],
    ) -> RecordedGraph | bool | None:
        """A graph of ``records``, whose operands ``operand`` makes tensors and whose copies ``copy`` makes. False: they
        cannot be captured; None: run them once as they are, then ask again.

        A first run loads kernels and libraries, which a capture must not.
        """
        if self.living >= MOST_GRAPHS:
            return False
        work: list[_Work] = []
        signature: list[object] = []
        varying: dict[str, Scalar] = {}
        for number, record in enumerate(records):
            if isinstance(record, Dispatch):
                tensors = {name: operand(view) for name, view in record.operands.items()}
                kernel = self._kernels[record.kernel]
                if not kernel.fixed(tensors, record.params):
                    return False
                if any(varying.setdefault(name, record.params[name]) != record.params[name] for name in kernel.varying):
                    return False
                work.append((number, record, functools.partial(kernel.run, tensors)))
                rest = tuple((name, value) for name, value in record.params.items() if name not in kernel.varying)
                signature.append((record.kernel, rest, *((t.shape, t.dtype) for t in tensors.values())))
            elif isinstance(record, Copy):
                work.append((number, record, functools.partial(copy, record)))
            elif not isinstance(record, Transition):
                return False
        first = next(record for record in records if isinstance(record, (Copy, Dispatch)))
        if first.queue != self._queue:
            return False
        if tuple(signature) not in self._warm:
            self._warm.add(tuple(signature))
            return None
        graph = self._capture(work, first.queue)
        self._living.add(kept)
        self.captured += 1
        return graph

    def _capture(self, work: list[_Work], queue: str) -> RecordedGraph:
        cells: list[tuple[str, int]] = []
        runs: list[Callable[[], None]] = []
        for number, record, run in work:
            if isinstance(record, Copy):
                runs.append(run)
                continue
            kernel, params = self._kernels[record.kernel], dict(record.params)
            for name in kernel.varying:
                params[name] = self._cell(name)  # type: ignore[assignment]  # what `Kernel.fixed` promises to take
                if all(known != name for known, _ in cells):
                    cells.append((name, number))
            runs.append(functools.partial(run, params))
        if not self._living:
            # A pool goes with the last of its graphs.
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with self._on, torch.inference_mode():
            # Not `torch.cuda.graph`, which waits for the whole device and collects garbage: copies go on meanwhile.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                for run in runs:
                    run()
            finally:
                graph.capture_end()
        return RecordedGraph(queue, graph, tuple(cells))

    def _cell(self, name: str) -> torch.Tensor:
        if name not in self._cells:
            with self._on:
                self._cells[name] = torch.zeros(1, dtype=torch.int32, device=self._device)
            self._values[name] = 0
        return self._cells[name]

    def close(self) -> None:
        """Let go of the cells: nothing is replayed any more."""
        self._cells.clear()
        self._values.clear()

    def replay(self, graph: RecordedGraph, records: Sequence[Record]) -> None:
        """Replay ``graph`` with the varying parameters of ``records``, on the current stream, which is that of its
        queue."""
        for name, number in graph.cells:
            record = records[number]
            assert isinstance(record, Dispatch)
            value = record.params[name]
            if self._values[name] != value:
                self._cells[name].fill_(value)  # type: ignore[arg-type]
                self._values[name] = value
        graph.graph.replay()
