"""What kernels ask of their operands and parameters: checks that refuse by name, and what the kernels here share."""

from __future__ import annotations

import torch

from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Cost, Operands, Params
from xinfer_lab.device.records import View
from xinfer_lab.qwen2.costs import Work

__all__ = ["FLOATS", "cost_of", "exactly", "operand", "shape", "torch_dtype", "want"]

FLOATS = ("float32", "float16", "bfloat16")
"""The types that weights and activations may have."""


def torch_dtype(view: View) -> torch.dtype:
    """The type of the elements of ``view``."""
    dtype = getattr(torch, view.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def cost_of(work: Work, launches: int = 1) -> Cost:
    """What ``work`` costs a device; ``launches``: kernels that torch launches on a GPU for it."""
    moved = float(work.bytes_read + work.bytes_written)
    return Cost(float(work.flops), moved, launches, float(work.pair_flops))


def want(condition: bool, kernel: str, message: str) -> None:
    """Raise `KernelError`, saying ``message`` about ``kernel``, unless ``condition`` holds."""
    if not condition:
        raise KernelError(f"{kernel}: {message}")


def operand(kernel: str, operands: Operands, name: str, rank: int, *dtypes: str) -> View:
    """The operand ``name``: a view of ``rank`` dimensions, none of them empty, in one of ``dtypes``."""
    # Every dispatch comes through here several times: texts are made for what is refused alone.
    view = operands.get(name)
    if view is None:
        raise KernelError(f"{kernel}: the operand {name!r} is missing; got {', '.join(operands) or 'none'}")
    if len(view.shape) != rank or min(view.shape) <= 0:
        raise KernelError(f"{kernel}: {name!r} needs {rank} dimensions, has {view.shape}")
    if view.dtype not in dtypes:
        raise KernelError(f"{kernel}: {name!r} must be {' or '.join(dtypes)}, not {view.dtype}")
    return view


def exactly(kernel: str, operands: Operands, params: Params, wanted: set[str], wanted_params: set[str]) -> None:
    """Operands and parameters have exactly these names."""
    if operands.keys() != wanted:
        raise KernelError(f"{kernel}: operands must be {sorted(wanted)}, not {sorted(operands)}")
    if params.keys() != wanted_params:
        raise KernelError(f"{kernel}: parameters must be {sorted(wanted_params)}, not {sorted(params)}")


def shape(kernel: str, name: str, view: View, wanted: tuple[int, ...]) -> None:
    """The operand ``name`` has the shape ``wanted``."""
    if view.shape != wanted:
        raise KernelError(f"{kernel}: {name!r} must have the shape {wanted}, but has {view.shape}")
