"""``decode_exponents``: the kernel that turns coded bytes in device memory into bfloat16 weights in device memory.

Importing this module registers it. Operands, all 1-D: ``sign_mantissa`` (uint8 [n]), ``codes`` (uint8), ``out``
(bfloat16 [n]), and, where something escapes, ``offsets`` (int32) and ``escapes`` (uint8), as
`xinfer_lab.residency.codec.format` has them. Parameters: ``width`` and ``base`` of the coding. On a GPU with Triton it
is one launch, or two where n is not a multiple of 4096; everywhere else the same bytes come from plain torch
operations.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping

import torch

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import Access, Cost, Kernel, Operands, Params
from xinfer_lab.device.records import View
from xinfer_lab.residency.codec.format import BLOCK, GROUP, MAX_COUNT, Coding, decode_workspace
from xinfer_lab.residency.operands import exactly, operand, shape, want

__all__ = ["DECODE_EXPONENTS", "decode_operands", "decode_params", "has_triton"]

_NAME = "decode_exponents"


def decode_operands(coding: Coding, buffer: str, offset: int, out: View) -> dict[str, View]:
    """The operands that decode what lies in ``buffer`` at byte ``offset`` into the weight ``out``."""
    dtypes = {"offsets": ("int32", 4)}
    operands = {"out": View(out.buffer, out.offset, (math.prod(out.shape),), out.dtype)}
    for name, section in coding.sections.items():
        dtype, size = dtypes.get(name, ("uint8", 1))
        operands[name] = View(buffer, offset + section.offset, (section.nbytes // size,), dtype)
    return operands


def decode_params(coding: Coding) -> dict[str, int]:
    """The parameters of that dispatch."""
    return {"width": coding.width, "base": coding.base}


@functools.cache
def has_triton() -> bool:
    """Whether Triton can be imported here."""
    return importlib.util.find_spec("triton") is not None


def _check(operands: Operands, params: Params) -> None:
    sections = {"sign_mantissa", "codes", "out"}
    if "offsets" in operands or "escapes" in operands:
        sections |= {"offsets", "escapes"}
    exactly(_NAME, operands, params, sections, {"width", "base"})
    out = operand(_NAME, operands, "out", 1, "bfloat16")
    count = out.shape[0]
    want(count <= MAX_COUNT, _NAME, f"a tensor has up to {MAX_COUNT} weights, not {count}")
    width, base = params["width"], params["base"]
    want(type(width) is int and 1 <= width <= 4, _NAME, f"width must be 1 to 4 bits, not {width!r}")
    assert isinstance(width, int)
    last = 256 - 2**width
    want(type(base) is int and 0 <= base <= last, _NAME, f"base must be 0 to {last}, not {base!r}")
    shape(_NAME, "sign_mantissa", operand(_NAME, operands, "sign_mantissa", 1, "uint8"), (count,))
    shape(_NAME, "codes", operand(_NAME, operands, "codes", 1, "uint8"), (-(-count // GROUP) * width,))
    if "escapes" in operands:
        shape(_NAME, "offsets", operand(_NAME, operands, "offsets", 1, "int32"), (-(-count // BLOCK),))
        escapes = operand(_NAME, operands, "escapes", 1, "uint8").shape[0]
        want(escapes <= count, _NAME, f"{escapes} escapes are more than the {count} weights")


def _access(operands: Operands, _: Params) -> Access:
    reads = tuple(view.span for name, view in operands.items() if name != "out")
    return Access(reads, (operands["out"].span,))


def _run(tensors: Mapping[str, torch.Tensor], params: Params) -> None:
    width, base = params["width"], params["base"]
    assert isinstance(width, int) and isinstance(base, int)
    # Imported here: the kernel is declared also where a lab asks for its decoder, and no module may hold that answer.
    if tensors["out"].is_cuda and has_triton():
        from xinfer_lab.residency.codec.triton_decode import decode_into_triton as decode_into
    else:
        from xinfer_lab.residency.codec.decode import decode_into
    decode_into(
        tensors["out"], tensors["sign_mantissa"], tensors["codes"], tensors.get("offsets"), tensors.get("escapes"),
        width, base,
    )  # fmt: skip


DECODE_EXPONENTS = KERNELS.register(
    Kernel(
        name=_NAME,
        run=_run,
        access=_access,
        # A few integer operations a weight, which are not what a GPU's FLOP rate counts: what binds is memory.
        cost=lambda o, _: Cost(0.0, float(sum(view.nbytes for view in o.values()))),
        workspace=lambda o, _: decode_workspace(o["out"].shape[0]),
        check=_check,
        fixed=lambda t, _: has_triton(),
    )
)
