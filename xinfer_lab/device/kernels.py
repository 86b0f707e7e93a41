"""Kernels: what a queue can be asked to run, and what each *declares* about itself.

Hazards, budgets, states and times are worked out from the declarations alone, without running anything. So a kernel
says, as functions of its operands and parameters, which bytes it reads and writes, how much it computes and moves, and
how much workspace it needs on top of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.records import Copy, Dispatch, HostRead, HostWrite, Record, Scalar, Span, View

if TYPE_CHECKING:
    import torch

__all__ = ["CLOSURE", "Access", "Cost", "Kernel", "KernelTable", "Operands", "Params", "closure_kernel"]

Operands = Mapping[str, View]
Params = Mapping[str, Scalar]

CLOSURE = "closure "
"""How the name of a closure's kernel begins: one device only knows it, so a stream that names it cannot be replayed."""


@dataclass(frozen=True, slots=True)
class Access:
    """The byte ranges that a command reads and writes."""

    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command costs: ``flops`` floating-point operations, ``bytes`` moved through device memory, and the
    ``launches`` of a GPU's own kernels that it is made of. ``pair_flops``: those of ``flops`` that attention spends on
    pairs of a query and a key."""

    flops: float
    bytes: float
    launches: int = 1
    pair_flops: float = 0.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """A named kernel and its declarations.

    ``run(tensors, params)`` gets one tensor per operand (views of device memory, named as the operands) and works in
    place. ``access``, ``cost`` and ``workspace`` (bytes beyond the operands) see only views and parameters. ``check``
    raises `KernelError` when operands or parameters do not fit; it runs before anything else, on untrusted streams too.
    ``from_host`` names operands that it may also read straight out of an upload heap, over the link: such as a table of
    which it needs a few rows. All others lie in device memory.

    ``varying`` names parameters that may differ when a command list is executed again; ``check_varying`` checks them
    alone, where the rest has been checked already. ``fixed(tensors, params)`` says whether ``run`` launches the same
    work whatever those are, and takes them as int32 tensors of one element in device memory, too: then a device may
    capture it once and replay it.
    """

    name: str
    run: Callable[[Mapping[str, torch.Tensor], Params], None]
    access: Callable[[Operands, Params], Access]
    cost: Callable[[Operands, Params], Cost]
    workspace: Callable[[Operands, Params], int]
    check: Callable[[Operands, Params], None]
    from_host: frozenset[str] = frozenset()
    varying: frozenset[str] = frozenset()
    check_varying: Callable[[Operands, Params], None] | None = None
    fixed: Callable[[Mapping[str, torch.Tensor], Params], bool] = lambda tensors, params: False


def closure_kernel(name: str, function: Callable[..., None]) -> Kernel:
    """A kernel that calls ``function`` with the tensors of its operands, in their order.

    Operands called ``read...`` are declared as read, those called ``write...`` as written; it counts as moving their
    bytes.
    """

    def spans(operands: Operands, prefix: str) -> tuple[Span, ...]:
        return tuple(view.span for key, view in operands.items() if key.startswith(prefix))

    return Kernel(
        name=name,
        run=lambda tensors, _: function(*tensors.values()),
        access=lambda operands, _: Access(spans(operands, "read"), spans(operands, "write")),
        cost=lambda operands, _: Cost(0.0, float(sum(view.nbytes for view in operands.values()))),
        workspace=lambda _, __: 0,
        check=lambda _, __: None,
    )


class KernelTable:
    """Kernels by name. A device owns one; a table can start as a copy of another."""

    def __init__(self, kernels: KernelTable | None = None) -> None:
        self._kernels: dict[str, Kernel] = dict(kernels._kernels) if kernels is not None else {}
        self._latest: tuple[str, Operands, Params, Access] | None = None

    def register(self, kernel: Kernel) -> Kernel:
        """Add ``kernel``. Raises `KernelError` if its name is taken by another one."""
        if self._kernels.get(kernel.name, kernel) is not kernel:
            raise KernelError(f"a kernel named {kernel.name!r} is registered already")
        self._kernels[kernel.name] = kernel
        return kernel

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            if name.startswith(CLOSURE):
                raise KernelError(
                    f"{name!r} is a function that was dispatched for exploring: only the device that it was given "
                    "to knows it. Register it as a kernel, so that its stream can be replayed and graded."
                ) from None
            known = ", ".join(sorted(self._kernels)) or "none"
            raise KernelError(f"no kernel is registered under the name {name!r}; registered: {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def access(self, record: Record) -> Access:
        """The byte ranges that ``record`` touches, on any lane; empty for records that touch none."""
        match record:
            case Copy():
                return Access(reads=(record.src,), writes=(record.dst,))
            case Dispatch():
                return self._access_of_dispatch(record)
            case HostWrite():
                return Access(writes=(record.dst,))
            case HostRead():
                return Access(reads=(record.src,))
            case _:
                return Access()

    def _access_of_dispatch(self, record: Dispatch) -> Access:
        # Command lists, states and the hazard checker ask for the same dispatch one after another.
        if self._latest is not None:
            kernel, operands, params, access = self._latest
            if operands is record.operands and params is record.params and kernel == record.kernel:
                return access
        access = self[record.kernel].access(record.operands, record.params)
        self._latest = record.kernel, record.operands, record.params, access
        return access
