"""Command queues and command lists: how a program asks a device to copy, compute, signal and wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from xinfer_lab.device.arguments import whole_number
from xinfer_lab.device.buffers import Buffer, as_span
from xinfer_lab.device.caller import caller
from xinfer_lab.device.command_sink import CommandSink
from xinfer_lab.device.errors import FenceError, StreamError
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.kernels import CLOSURE, closure_kernel
from xinfer_lab.device.records import (
    Allocate,
    Copy,
    Dispatch,
    Record,
    Scalar,
    Signal,
    Span,
    Transition,
    View,
    Wait,
)
from xinfer_lab.device.states import FIXED_STATES, required_states

__all__ = ["CommandList", "CommandQueue", "KeptCall"]


@dataclass(slots=True, weakref_slot=True, eq=False)
class KeptCall:
    """An ExecuteCommandLists call that may be executed again: its ``records``, the tracked states of its buffers
    ``before`` and ``after``, their allocations as of so many ``frees``, the parameters that each record lets vary, and
    what a device makes of it for itself (``compiled``)."""

    records: tuple[Record, ...]
    before: dict[str, frozenset[str]] = field(default_factory=dict)
    after: dict[str, frozenset[str]] = field(default_factory=dict)
    allocations: tuple[Allocate, ...] = ()
    frees: int = 0
    varying: tuple[tuple[str, ...], ...] = ()
    compiled: object = None


class CommandQueue:
    """Runs what it is given in order, asynchronously to the host and to other queues. ``kind``: "direct" or "copy"."""

    def __init__(self, device: CommandSink, name: str, kind: str) -> None:
        self.device, self.name, self.kind = device, name, kind

    def copy(self, dst: Buffer | Span | View, src: Buffer | Span | View, *, label: str = "") -> None:
        """Copy the bytes of ``src`` to ``dst`` (equal sizes), as an ExecuteCommandLists call of its own."""
        span = as_span(dst, self.device)
        self.device.submit(
            Copy(
                queue=self.name, dst=span, src=as_span(src, self.device), call=self.device.next_call(), label=label,
                where=caller(),
            )
        )  # fmt: skip

    def dispatch(
        self,
        kernel: str | Callable[..., None],
        *,
        label: str = "",
        params: Mapping[str, Scalar] | None = None,
        reads: Sequence[View] = (),
        writes: Sequence[View] = (),
        **operands: View,
    ) -> None:
        """Run a registered ``kernel`` on ``operands`` (views by name), as an ExecuteCommandLists call of its own.

        For exploring, ``kernel`` may be any function of tensors instead: it gets the tensors of ``reads``, then of
        ``writes``, which declare what it touches. Such a stream cannot be replayed, and grading does not take it.
        """
        self.device.submit(
            self.dispatch_record(kernel, label, params, reads, writes, operands, self.device.next_call(), False)
        )

    def dispatch_record(
        self,
        kernel: str | Callable[..., None],
        label: str,
        params: Mapping[str, Scalar] | None,
        reads: Sequence[View],
        writes: Sequence[View],
        operands: Mapping[str, View],
        call: int,
        listed: bool,
    ) -> Dispatch:
        """The record of a dispatch by the queue itself (``listed`` false) or by a command list."""
        if isinstance(kernel, str):
            if reads or writes:
                raise TypeError(
                    f"kernel {kernel!r} declares what it touches: pass its operands by name, not reads and writes"
                )
        elif operands or params:
            names = ", ".join([*operands, *(params or ())])
            raise TypeError(
                f"a function is given the tensors of reads and writes alone, not {names}: close over the rest"
            )
        else:
            kernel, operands = self._adopt(kernel, reads, writes)
        for name, view in operands.items():
            if not isinstance(view, View):
                raise TypeError(
                    f"operand {name!r} of {kernel!r} must be a view, as buffer.view(dtype, shape), not "
                    f"{type(view).__name__}"
                )
        return Dispatch(
            queue=self.name, kernel=kernel, operands=dict(operands), params=dict(params or {}), call=call, label=label,
            listed=listed, where=caller(),
        )  # fmt: skip

    def _adopt(
        self, function: Callable[..., None], reads: Sequence[View], writes: Sequence[View]
    ) -> tuple[str, Mapping[str, View]]:
        if not callable(function):
            raise TypeError(f"a kernel is a registered name or a function, not {type(function).__name__}")
        name = self.device.fresh_name(f"{CLOSURE}{getattr(function, '__name__', 'function')[:64]}")
        self.device.kernels.register(closure_kernel(name, function))
        operands = {f"read{i}": view for i, view in enumerate(reads)}
        return name, operands | {f"write{i}": view for i, view in enumerate(writes)}

    def signal(self, fence: Fence, value: int) -> None:
        """Set ``fence`` to ``value`` once everything submitted to this queue so far has completed."""
        name, value = self._fence_name(fence), whole_number(value, "a fence value")
        self.device.submit(Signal(queue=self.name, fence=name, value=value, where=caller()))

    def wait(self, fence: Fence, value: int) -> None:
        """Let nothing submitted to this queue from now on start before ``fence`` has reached ``value``."""
        name, value = self._fence_name(fence), whole_number(value, "a fence value")
        self.device.submit(Wait(queue=self.name, fence=name, value=value, where=caller()))

    def _fence_name(self, fence: Fence) -> str:
        if not isinstance(fence, Fence):
            raise TypeError(f"a fence is made by device.create_fence(), not {type(fence).__name__}")
        if fence.device is not self.device:
            raise FenceError(f"fence {fence.name!r} belongs to another device ({fence.device.name})")
        return fence.name

    def record(self, label: str = "", *, keep: bool = False) -> CommandList:
        """A command list to fill in a ``with`` block; the queue executes it as one call when the block ends.

        With ``keep`` it can be executed again later, by `execute`.
        """
        return CommandList(self, label, keep)

    def execute(self, commands: CommandList, **params: Scalar) -> None:
        """Execute ``commands`` again, as an ExecuteCommandLists call of its own, without recording it again.

        ``params`` take the place of the dispatches' own, of those kernels that let them vary (`Kernel.varying`). What
        the stream says is the same as if the list had been recorded once more. Raises `StreamError` unless the list is
        `CommandList.executable`.
        """
        if commands.queue is not self:
            raise StreamError(f"this list was recorded for the {commands.queue.name} queue, not for {self.name}")
        if not commands.executable:
            raise StreamError(
                "this command list cannot be executed again: it has to be recorded with keep=True and closed, with all "
                "of its buffers still there, and in the states in which it found them; record it again"
            )
        self.device.execute_again(commands, params)

    def __repr__(self) -> str:
        return f"CommandQueue({self.name!r})"


class CommandList:
    """Commands that one ExecuteCommandLists call hands to a queue together.

    Nothing is submitted before the ``with`` block ends; a ``queue.signal`` inside the block therefore comes *before*
    the list. While recording, the device's state tracker decides which barriers the list needs. A block left by an
    exception submits nothing.
    """

    def __init__(self, queue: CommandQueue, label: str, keep: bool = False) -> None:
        self.queue, self.label, self.keep, self.device = queue, label, keep, queue.device
        self._records: list[Record] = []
        self._state = "new"
        self.kept: KeptCall | None = None
        """What is known about its first execution, if it may be executed again."""

    @property
    def executable(self) -> bool:
        """Whether `CommandQueue.execute` can take it now: its buffers are there and in the states in which it found
        them."""
        return self.kept is not None and self.device.may_repeat(self.kept)

    def __enter__(self) -> CommandList:
        if self._state != "new":
            raise RuntimeError("a command list is recorded once; ask the queue for another one")
        self.device.open_list(self)
        self._state = "open"
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._state = "closed"
        self.device.close_list(self, abandon=kind is not None)

    @property
    def records(self) -> tuple[Record, ...]:
        """What was recorded so far."""
        return tuple(self._records)

    def append(self, record: Record) -> None:
        """Record ``record``. Raises `RuntimeError` outside of the ``with`` block: it would never be executed."""
        self._require_open()
        self._records.append(record)

    def _require_open(self) -> None:
        if self._state != "open":
            raise RuntimeError("commands are recorded inside `with queue.record() as cmds:`, and not after its end")

    def copy(self, dst: Buffer | Span | View, src: Buffer | Span | View, *, label: str = "") -> None:
        """Record a copy of the bytes of ``src`` to ``dst`` (equal sizes)."""
        self._add(
            Copy(
                queue=self.queue.name, dst=as_span(dst, self.device), src=as_span(src, self.device), call=0,
                label=label or self.label, listed=True,
                where=caller(),
            )
        )  # fmt: skip

    def dispatch(
        self,
        kernel: str | Callable[..., None],
        *,
        label: str = "",
        params: Mapping[str, Scalar] | None = None,
        reads: Sequence[View] = (),
        writes: Sequence[View] = (),
        **operands: View,
    ) -> None:
        """Record a dispatch; see `CommandQueue.dispatch`."""
        self._add(self.queue.dispatch_record(kernel, label or self.label, params, reads, writes, operands, 0, True))

    def transition(self, buffer: Buffer, before: str, after: str) -> None:
        """Record a barrier by hand, to explore what D3D12 accepts. Lists add the barriers that they need themselves."""
        self._require_open()
        name = as_span(buffer, self.device).buffer
        self.device.tracker.barrier(name, after)
        self._barrier(name, before, after)

    def _barrier(self, buffer: str, before: str, after: str) -> None:
        self.append(
            Transition(
                queue=self.queue.name, buffer=buffer, before=before, after=after, call=0, listed=True, where=caller()
            )
        )  # fmt: skip

    def _add(self, record: Copy | Dispatch) -> None:
        self._require_open()
        device = self.device
        for name, state in required_states(record, device.kernels).items():
            if device.heap_of(name) not in FIXED_STATES and (barrier := device.tracker.use(name, state)):
                self._barrier(name, *barrier)
        self.append(record)

    def __bool__(self) -> bool:
        raise TypeError("a command list has no truth value")
