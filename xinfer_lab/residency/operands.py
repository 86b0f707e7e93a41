"""What kernels ask of their operands and parameters: checks that refuse by name, for the kernels of this package."""

from __future__ import annotations

from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Operands, Params
from xinfer_lab.device.records import View

__all__ = ["exactly", "operand", "shape", "want"]


def want(condition: bool, kernel: str, message: str) -> None:
    """Raise `KernelError`, saying ``message`` about ``kernel``, unless ``condition`` holds."""
    if not condition:
        raise KernelError(f"{kernel}: {message}")


def operand(kernel: str, operands: Operands, name: str, rank: int, *dtypes: str) -> View:
    """The operand ``name``: a view of ``rank`` dimensions, none of them empty, in one of ``dtypes``."""
    want(name in operands, kernel, f"the operand {name!r} is missing; got {', '.join(operands) or 'none'}")
    view = operands[name]
    want(len(view.shape) == rank and min(view.shape) > 0, kernel, f"{name!r} needs {rank} dimensions, has {view.shape}")
    want(view.dtype in dtypes, kernel, f"{name!r} must be {' or '.join(dtypes)}, not {view.dtype}")
    return view


def exactly(kernel: str, operands: Operands, params: Params, wanted: set[str], wanted_params: set[str]) -> None:
    """Operands and parameters have exactly these names."""
    want(set(operands) == wanted, kernel, f"operands must be {sorted(wanted)}, not {sorted(operands)}")
    want(set(params) == wanted_params, kernel, f"parameters must be {sorted(wanted_params)}, not {sorted(params)}")


def shape(kernel: str, name: str, view: View, wanted: tuple[int, ...]) -> None:
    """The operand ``name`` has the shape ``wanted``."""
    want(view.shape == wanted, kernel, f"{name!r} must have the shape {wanted}, but has {view.shape}")
