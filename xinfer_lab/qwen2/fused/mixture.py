"""Experts of one row in Triton: what `xinfer_lab.qwen2.mixture` says, for a decode step of one sequence.

One expert at a time, several of them wherever they lie, or those that device memory names out of all: the products are
the same tiles, summed in the same order, so that all of these give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import triton
import triton.language as tl

from xinfer_lab.qwen2.fused.product import dot_rows

__all__ = ["experts_at", "experts_row"]

_ROWS, _COLUMNS, _WARPS = 2, 512, 4


@triton.jit  # type: ignore[untyped-decorator]
def _gate_of(  # type: ignore[no-untyped-def]
    x, first, made, which, up_at, WIDE: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """SiLU(gate x) * (up x) of the expert that begins at ``first``."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dtype = made.dtype.element_ty
    wide = dot_rows(x, first, rows, WIDE, SIZE, ROWS, COLUMNS).to(dtype).to(tl.float32)
    other = dot_rows(x, first + up_at, rows, WIDE, SIZE, ROWS, COLUMNS).to(dtype)
    tl.store(made + which * WIDE + rows, (wide / (1.0 + tl.exp(-wide))).to(dtype) * other, mask=rows < WIDE)


@triton.jit  # type: ignore[untyped-decorator]
def _add_down(  # type: ignore[no-untyped-def]
    total, made, first, scores, which, rows,
    WIDE: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """total + score * (down made), each rounded as if it were a launch of its own."""
    dtype = total.dtype
    part = dot_rows(made + which * WIDE, first, rows, SIZE, WIDE, ROWS, COLUMNS).to(dtype)
    part = (part.to(tl.float32) * tl.load(scores + which).to(tl.float32)).to(dtype)
    return (total.to(tl.float32) + part.to(tl.float32)).to(dtype)


@triton.jit  # type: ignore[untyped-decorator]
def _gate_by_number(  # type: ignore[no-untyped-def]
    x, weights, chosen, made, stride, up_at,
    WIDE: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    which = tl.program_id(1)
    _gate_of(x, weights + tl.load(chosen + which) * stride, made, which, up_at, WIDE, SIZE, ROWS, COLUMNS)


@triton.jit  # type: ignore[untyped-decorator]
def _down_by_number(  # type: ignore[no-untyped-def]
    made, weights, chosen, scores, mixed, stride, down_at,
    WIDE: tl.constexpr, SIZE: tl.constexpr, COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.load(mixed + rows, mask=rows < SIZE, other=0.0)
    for which in tl.static_range(COUNT):
        first = weights + tl.load(chosen + which) * stride + down_at
        total = _add_down(total, made, first, scores, which, rows, WIDE, SIZE, ROWS, COLUMNS)
    tl.store(mixed + rows, total, mask=rows < SIZE)


@triton.jit  # type: ignore[untyped-decorator]
def _gate_by_place(  # type: ignore[no-untyped-def]
    x, weights, made, up_at,
    WIDE: tl.constexpr, SIZE: tl.constexpr, COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    for which in tl.static_range(COUNT):
        if tl.program_id(1) == which:
            _gate_of(x, weights[which], made, which, up_at, WIDE, SIZE, ROWS, COLUMNS)


@triton.jit  # type: ignore[untyped-decorator]
def _down_by_place(  # type: ignore[no-untyped-def]
    made, weights, scores, mixed, down_at,
    WIDE: tl.constexpr, SIZE: tl.constexpr, COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.load(mixed + rows, mask=rows < SIZE, other=0.0)
    for which in tl.static_range(COUNT):
        total = _add_down(total, made, weights[which] + down_at, scores, which, rows, WIDE, SIZE, ROWS, COLUMNS)
    tl.store(mixed + rows, total, mask=rows < SIZE)


def experts_at(
    normed: torch.Tensor, scores: torch.Tensor, experts: Sequence[Mapping[str, torch.Tensor]], mixed: torch.Tensor
) -> None:
    """mixed[1, H] += sum of scores[K] mlp(normed[1, H]) over K experts, wherever they lie.

    Each has its three tensors by their names relative to it (`xinfer_lab.qwen2.mixture.EXPERT_TENSORS`), laid out
    alike: the second and the third lie where those of the first expert do, seen from its first.
    """
    gates = tuple(expert["gate_proj.weight"] for expert in experts)
    wide, size = gates[0].shape
    step, first = gates[0].element_size(), gates[0].data_ptr()
    up_at, down_at = ((experts[0][name].data_ptr() - first) // step for name in ("up_proj.weight", "down_proj.weight"))
    made = torch.empty(len(gates), wide, dtype=normed.dtype, device=normed.device)
    shape = {"WIDE": wide, "SIZE": size, "COUNT": len(gates), "ROWS": _ROWS, "COLUMNS": _COLUMNS, "num_warps": _WARPS}
    _gate_by_place[(triton.cdiv(wide, _ROWS), len(gates))](normed, gates, made, up_at, **shape)
    _down_by_place[(triton.cdiv(size, _ROWS),)](made, gates, scores, mixed, down_at, **shape)


def experts_row(
    normed: torch.Tensor, chosen: torch.Tensor, scores: torch.Tensor, weights: torch.Tensor, wide: int, up_at: int,
    down_at: int, mixed: torch.Tensor,
) -> None:  # fmt: skip
    """The same over the experts chosen[K] (int64, in growing order) of weights[E, N]: all experts, each N elements, of
    ``wide`` rows of gate, and ``up_at`` and ``down_at`` from there the others. The host need not know the numbers."""
    size, count, stride = normed.shape[-1], chosen.shape[0], weights.shape[1]
    made = torch.empty(count, wide, dtype=normed.dtype, device=normed.device)
    shape = {"WIDE": wide, "SIZE": size, "ROWS": _ROWS, "COLUMNS": _COLUMNS, "num_warps": _WARPS}
    _gate_by_number[(triton.cdiv(wide, _ROWS), count)](normed, weights, chosen, made, stride, up_at, **shape)
    _down_by_number[(triton.cdiv(size, _ROWS),)](
        made, weights, chosen, scores, mixed, stride, down_at, COUNT=count, **shape
    )
