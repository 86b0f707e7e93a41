"""Command queues and command lists: how a program asks a device to copy, compute, signal and wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from xinfer_lab.device.buffers import Buffer, as_span
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.records import Copy, Dispatch, Record, Scalar, Signal, Span, Transition, View, Wait
from xinfer_lab.device.states import required_states

if TYPE_CHECKING:
    from xinfer_lab.device.device import Device

__all__ = ["CommandList", "CommandQueue"]


class CommandQueue:
    """Runs what it is given in order, asynchronously to the host and to other queues. ``kind``: "direct" or "copy"."""

    def __init__(self, device: Device, name: str, kind: str) -> None:
        self.device, self.name, self.kind = device, name, kind

    def copy(self, dst: Buffer | Span | View, src: Buffer | Span | View, *, label: str = "") -> None:
        """Copy the bytes of ``src`` to ``dst`` (equal sizes), as an ExecuteCommandLists call of its own."""
        span = as_span(dst)
        self.device.submit(
            Copy(
                queue=self.name, dst=span, src=as_span(src), call=self.device.next_call(), label=label,
                where=self.device.caller(),
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
            self._dispatch_record(kernel, label, params, reads, writes, operands, self.device.next_call(), False)
        )

    def _dispatch_record(
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
        if not isinstance(kernel, str):
            kernel, operands = self.device.adopt_closure(kernel, reads, writes)
        return Dispatch(
            queue=self.name, kernel=kernel, operands=dict(operands), params=dict(params or {}), call=call, label=label,
            listed=listed, where=self.device.caller(),
        )  # fmt: skip

    def signal(self, fence: Fence, value: int) -> None:
        """Set ``fence`` to ``value`` once everything submitted to this queue so far has completed."""
        self.device.submit(Signal(queue=self.name, fence=fence.name, value=value, where=self.device.caller()))

    def wait(self, fence: Fence, value: int) -> None:
        """Let nothing submitted to this queue from now on start before ``fence`` has reached ``value``."""
        self.device.submit(Wait(queue=self.name, fence=fence.name, value=value, where=self.device.caller()))

    def record(self, label: str = "") -> CommandList:
        """A command list to fill in a ``with`` block; the queue executes it as one call when the block ends."""
        return CommandList(self, label)

    def __repr__(self) -> str:
        return f"CommandQueue({self.name!r})"


class CommandList:
    """Commands that one ExecuteCommandLists call hands to a queue together.

    Nothing is submitted before the ``with`` block ends; a ``queue.signal`` inside the block therefore comes *before* the list.
    While recording, the device's state tracker decides which barriers the list needs. A block left by an exception
    submits nothing.
    """

    def __init__(self, queue: CommandQueue, label: str) -> None:
        self.queue, self.label = queue, label
        self._records: list[Record] | None = None

    def __enter__(self) -> CommandList:
        if self._records is not None:
            raise RuntimeError("a command list is recorded once; ask the queue for another one")
        self._records = []
        self.queue.device.open_list(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.queue.device.close_list(self, abandon=kind is not None)

    @property
    def records(self) -> list[Record]:
        """What was recorded so far; `RuntimeError` outside of the ``with`` block."""
        if self._records is None:
            raise RuntimeError("commands are recorded inside `with queue.record() as cmds:`")
        return self._records

    def copy(self, dst: Buffer | Span | View, src: Buffer | Span | View, *, label: str = "") -> None:
        """Record a copy of the bytes of ``src`` to ``dst`` (equal sizes)."""
        self._add(
            Copy(
                queue=self.queue.name, dst=as_span(dst), src=as_span(src), call=0, label=label or self.label, listed=True,
                where=self.queue.device.caller(),
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
        self._add(
            self.queue._dispatch_record(kernel, label or self.label, params, reads, writes, operands, 0, True)
        )

    def transition(self, buffer: Buffer, before: str, after: str) -> None:
        """Record a barrier by hand, for exploring what D3D12 accepts. Lists add the barriers that they need themselves."""
        self.queue.device.tracker.barrier(buffer.name, after)
        self.records.append(
            Transition(
                queue=self.queue.name, buffer=buffer.name, before=before, after=after, call=0, listed=True,
                where=self.queue.device.caller(),
            )
        )  # fmt: skip

    def _add(self, record: Copy | Dispatch) -> None:
        device = self.queue.device
        for name, state in required_states(record, device.kernels).items():
            if barrier := device.tracker.use(name, state):
                before, after = barrier
                self.records.append(
                    Transition(
                        queue=self.queue.name, buffer=name, before=before, after=after, call=0, listed=True,
                        where=record.where,
                    )
                )  # fmt: skip
        self.records.append(record)

    def __bool__(self) -> Any:
        raise TypeError("a command list has no truth value")
