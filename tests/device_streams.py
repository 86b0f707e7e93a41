"""Small command streams written by hand, for the tests of what is said about a stream without running it."""

from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable
from xinfer_lab.device.records import (
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Signal,
    Source,
    Span,
    Transition,
    View,
    Wait,
)


def kernels() -> KernelTable:
    """One kernel, ``use``: it reads the operands whose names start with ``r`` and writes those with ``w``."""
    table = KernelTable()
    table.register(
        Kernel(
            name="use",
            run=lambda tensors, params: None,
            access=lambda operands, params: Access(
                reads=tuple(view.span for name, view in operands.items() if name.startswith("r")),
                writes=tuple(view.span for name, view in operands.items() if name.startswith("w")),
            ),
            cost=lambda operands, params: Cost(1.0, 1.0),
            workspace=lambda operands, params: 0,
            check=lambda operands, params: None,
        )
    )
    return table


def span(text: str) -> Span:
    """``"slot0"`` is bytes 0 to 256 of slot0, ``"slot0:64:128"`` bytes 64 to 128."""
    name, *bounds = text.split(":")
    start, end = map(int, bounds) if bounds else (0, 256)
    return Span(name, start, end - start)


class Script:
    """Writes a stream down line by line: each verb appends one record and says which it was."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._call = 0

    def add(self, record: Record) -> int:
        self.records.append(record)
        return len(self.records) - 1

    def _next_call(self, call: int | None) -> int:
        self._call = self._call + 1 if call is None else call
        return self._call

    def alloc(self, *names: str, heap: str = "default") -> None:
        for name in names:
            self.add(Allocate(buffer=name, size=256, heap=heap))

    def free(self, name: str, where: str = "") -> int:
        return self.add(Free(buffer=name, where=where))

    def copy(self, queue: str, dst: str, src: str, *, call: int | None = None, listed: bool = False, where: str = ""):
        return self.add(
            Copy(queue=queue, dst=span(dst), src=span(src), call=self._next_call(call), listed=listed, where=where)
        )

    def use(
        self,
        *,
        reads: str = "",
        writes: str = "",
        queue: str = "direct",
        call: int | None = None,
        listed: bool = False,
        where: str = "",
    ) -> int:
        operands = {}
        for letter, names in (("r", reads), ("w", writes)):
            for number, name in enumerate(names.split()):
                part = span(name)
                operands[f"{letter}{number}"] = View(part.buffer, part.offset, (part.size,), "uint8")
        return self.add(
            Dispatch(
                queue=queue,
                kernel="use",
                operands=operands,
                call=self._next_call(call),
                listed=listed,
                where=where,
            )
        )

    def barrier(
        self, queue: str, buffer: str, before: str, after: str, *, call: int | None = None, listed: bool = True
    ):
        return self.add(
            Transition(
                queue=queue, buffer=buffer, before=before, after=after, call=self._next_call(call), listed=listed
            )
        )

    def signal(self, queue: str, fence: str, value: int, where: str = "") -> int:
        return self.add(Signal(queue=queue, fence=fence, value=value, where=where))

    def wait(self, queue: str, fence: str, value: int, where: str = "") -> int:
        return self.add(Wait(queue=queue, fence=fence, value=value, where=where))

    def host_wait(self, fence: str, value: int, where: str = "") -> int:
        return self.add(HostWait(fence=fence, value=value, where=where))

    def write(self, dst: str, where: str = "") -> int:
        part = span(dst)
        return self.add(HostWrite(dst=part, source=Source("weights", 0, part.size), where=where))

    def read(self, src: str, where: str = "") -> int:
        return self.add(HostRead(src=span(src), where=where))

    def assume(self, buffer: str) -> int:
        return self.add(AssumeCommon(buffer=buffer))

    def without(self, *indices: int) -> list[Record]:
        """The records but for those at ``indices``: what a program would issue that forgot those lines."""
        return [record for index, record in enumerate(self.records) if index not in indices]
