"""The kernels of a layer with experts: the maths of `xinfer_lab.qwen2.mixture` with their declarations for a device.

Which rows an expert reads and adds to depends on what tokens chose: declared are all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import Access, Kernel, Operands, Params
from xinfer_lab.device.records import DTYPE_BYTES, View
from xinfer_lab.qwen2 import mixture, mixture_costs
from xinfer_lab.qwen2.costs import Work
from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layout import aligned_elements
from xinfer_lab.residency.operands import FLOATS, cost_of, exactly, operand, shape, torch_dtype, want

__all__ = [
    "COMBINE",
    "EXPERT",
    "EXPERTS",
    "EXPERTS_TOGETHER",
    "EXPERT_WEIGHTS",
    "ROUTE",
    "SHARED_EXPERT",
    "SHARED_WEIGHTS",
    "together_names",
]

EXPERT_WEIGHTS = mixture.EXPERT_TENSORS
"""The weight operands of ``expert``: its tensors by their names relative to it."""
_SHARED = "mlp.shared_expert."
SHARED_WEIGHTS = (*(f"{_SHARED}{name}" for name in EXPERT_WEIGHTS), "mlp.shared_expert_gate.weight")
"""The weight operands of ``shared_expert``: tensors by their names relative to the layer."""
_ROUTE_LAUNCHES, _SHARED_LAUNCHES, _EXPERT_LAUNCHES, _EXPERTS_LAUNCHES = 18, (5, 7), (2, 6), 2
"""Kernels that are launched on a GPU with Triton, counted from the operations: for one row, and for more."""


def _check_mlp(kernel: str, operands: Operands, prefix: str, size: int, dtype: str) -> None:
    wide = operand(kernel, operands, f"{prefix}gate_proj.weight", 2, dtype).shape[0]
    for name, wanted in zip(EXPERT_WEIGHTS, ((wide, size), (wide, size), (size, wide)), strict=True):
        shape(kernel, prefix + name, operand(kernel, operands, prefix + name, 2, dtype), wanted)


# route: hidden [B, T, H], norm [H], gate [E, H] -> normed [B T, H], experts [B T K], rows [B T K], scores [B T K]


def _check_route(operands: Operands, params: Params) -> None:
    kernel = "route"
    wanted = {"hidden", "norm", "gate", "normed", "experts", "rows", "scores"}
    exactly(kernel, operands, params, wanted, {"rms_norm_eps", "renormalise"})
    eps, renormalise = params["rms_norm_eps"], params["renormalise"]
    want(isinstance(eps, float) and 0 < eps < 1, kernel, f"rms_norm_eps must be between 0 and 1, not {eps!r}")
    want(isinstance(renormalise, bool), kernel, f"renormalise must be true or false, not {renormalise!r}")
    hidden = operand(kernel, operands, "hidden", 3, *FLOATS)
    batch, tokens, size = hidden.shape
    rows = batch * tokens
    shape(kernel, "norm", operand(kernel, operands, "norm", 1, hidden.dtype), (size,))
    gate = operand(kernel, operands, "gate", 2, hidden.dtype)
    shape(kernel, "gate", gate, (gate.shape[0], size))
    shape(kernel, "normed", operand(kernel, operands, "normed", 2, hidden.dtype), (rows, size))
    experts = operand(kernel, operands, "experts", 1, "int64")
    per_row = experts.shape[0] // rows
    want(
        1 <= per_row <= gate.shape[0] and per_row * rows == experts.shape[0],
        kernel,
        f"{experts.shape[0]} choices are not 1 to {gate.shape[0]} for each of {rows} rows",
    )
    shape(kernel, "rows", operand(kernel, operands, "rows", 1, "int64"), experts.shape)
    shape(kernel, "scores", operand(kernel, operands, "scores", 1, hidden.dtype), experts.shape)


def _route_work(operands: Operands) -> Work:
    gate, normed = operands["gate"], operands["normed"]
    rows = normed.shape[0]
    return mixture_costs.route_work(
        rows=rows, hidden_size=gate.shape[1], experts=gate.shape[0], per_row=operands["experts"].shape[0] // rows,
        dtype=torch_dtype(gate),
    )  # fmt: skip


def _run_route(tensors: Mapping[str, torch.Tensor], params: Params) -> None:
    eps, renormalise = params["rms_norm_eps"], params["renormalise"]
    assert isinstance(eps, float) and isinstance(renormalise, bool)
    mixture.route(**tensors, eps=eps, renormalise=renormalise)


ROUTE = KERNELS.register(
    Kernel(
        name="route",
        run=_run_route,
        access=lambda o, _: _spans(o, ("hidden", "norm", "gate"), ("normed", "experts", "rows", "scores")),
        cost=lambda o, _: cost_of(_route_work(o), _ROUTE_LAUNCHES),
        workspace=lambda o, _: _route_work(o).workspace,
        check=_check_route,
        fixed=lambda t, _: fused_for(t["normed"]) is not None,
    )
)


# shared_expert: normed [R, H], four weights -> mixed [R, H]


def _check_shared(operands: Operands, params: Params) -> None:
    kernel = "shared_expert"
    exactly(kernel, operands, params, {"normed", "mixed", *SHARED_WEIGHTS}, set())
    normed = operand(kernel, operands, "normed", 2, *FLOATS)
    shape(kernel, "mixed", operand(kernel, operands, "mixed", 2, normed.dtype), normed.shape)
    size = normed.shape[1]
    _check_mlp(kernel, operands, _SHARED, size, normed.dtype)
    gate = operand(kernel, operands, "mlp.shared_expert_gate.weight", 2, normed.dtype)
    shape(kernel, "mlp.shared_expert_gate.weight", gate, (1, size))


def _shared_work(operands: Operands) -> Work:
    normed = operands["normed"]
    return mixture_costs.shared_expert_work(
        rows=normed.shape[0], hidden_size=normed.shape[1], dtype=torch_dtype(normed),
        intermediate_size=operands[f"{_SHARED}gate_proj.weight"].shape[0],
    )  # fmt: skip


SHARED_EXPERT = KERNELS.register(
    Kernel(
        name="shared_expert",
        run=lambda t, _: mixture.shared_expert(t["normed"], t, t["mixed"]),
        access=lambda o, _: _spans(o, ("normed", *SHARED_WEIGHTS), ("mixed",)),
        cost=lambda o, _: cost_of(_shared_work(o), _SHARED_LAUNCHES[o["normed"].shape[0] > 1]),
        workspace=lambda o, _: _shared_work(o).workspace,
        check=_check_shared,
        fixed=lambda t, _: fused_for(t["normed"]) is not None,
    )
)


# expert: normed [R, H], rows [N], scores [N], three weights -> mixed [R, H] in place


def _check_expert(operands: Operands, params: Params) -> None:
    kernel = "expert"
    exactly(kernel, operands, params, {"normed", "rows", "scores", "mixed", *EXPERT_WEIGHTS}, set())
    normed = operand(kernel, operands, "normed", 2, *FLOATS)
    shape(kernel, "mixed", operand(kernel, operands, "mixed", 2, normed.dtype), normed.shape)
    rows = operand(kernel, operands, "rows", 1, "int64")
    want(
        rows.shape[0] <= normed.shape[0],
        kernel,
        f"{rows.shape[0]} rows are more than the {normed.shape[0]} there are, and each takes an expert once",
    )
    shape(kernel, "scores", operand(kernel, operands, "scores", 1, normed.dtype), rows.shape)
    _check_mlp(kernel, operands, "", normed.shape[1], normed.dtype)


def _expert_work(operands: Operands) -> Work:
    normed = operands["normed"]
    return mixture_costs.expert_work(
        rows=operands["rows"].shape[0], hidden_size=normed.shape[1], dtype=torch_dtype(normed),
        intermediate_size=operands["gate_proj.weight"].shape[0],
    )  # fmt: skip


EXPERT = KERNELS.register(
    Kernel(
        name="expert",
        run=lambda t, _: mixture.expert(t["normed"], t["rows"], t["scores"], t, t["mixed"]),
        access=lambda o, _: _spans(o, ("normed", "rows", "scores", "mixed", *EXPERT_WEIGHTS), ("mixed",)),
        cost=lambda o, _: cost_of(_expert_work(o), _EXPERT_LAUNCHES[o["normed"].shape[0] > 1]),
        workspace=lambda o, _: _expert_work(o).workspace,
        check=_check_expert,
        fixed=lambda t, _: fused_for(t["normed"]) is not None,
    )
)


# experts: normed [1, H], chosen [K], scores [K], weights [E, N] -> mixed [1, H] in place


def _check_experts(operands: Operands, params: Params) -> None:
    kernel = "experts"
    exactly(kernel, operands, params, {"normed", "chosen", "scores", "weights", "mixed"}, {"intermediate_size"})
    normed = operand(kernel, operands, "normed", 2, *FLOATS)
    shape(kernel, "normed", normed, (1, normed.shape[1]))
    shape(kernel, "mixed", operand(kernel, operands, "mixed", 2, normed.dtype), normed.shape)
    chosen = operand(kernel, operands, "chosen", 1, "int64")
    shape(kernel, "scores", operand(kernel, operands, "scores", 1, normed.dtype), chosen.shape)
    wide = params["intermediate_size"]
    want(type(wide) is int and wide > 0, kernel, f"intermediate_size must be 1 or more, not {wide!r}")
    assert isinstance(wide, int)
    weights = operand(kernel, operands, "weights", 2, normed.dtype)
    each = 3 * aligned_elements(wide * normed.shape[1], DTYPE_BYTES[normed.dtype])
    shape(kernel, "weights", weights, (weights.shape[0], each))
    want(chosen.shape[0] <= weights.shape[0], kernel, f"{chosen.shape[0]} of {weights.shape[0]} experts were chosen")


def _experts_work(operands: Operands, params: Params) -> Work:
    normed, wide = operands["normed"], params["intermediate_size"]
    assert isinstance(wide, int)
    return mixture_costs.experts_of_row_work(
        chosen=operands["chosen"].shape[0], hidden_size=normed.shape[1], intermediate_size=wide,
        dtype=torch_dtype(normed),
    )  # fmt: skip


def _run_experts(tensors: Mapping[str, torch.Tensor], params: Params) -> None:
    wide = params["intermediate_size"]
    assert isinstance(wide, int)
    mixture.experts_of_row(
        tensors["normed"], tensors["chosen"], tensors["scores"], tensors["weights"], wide, tensors["mixed"]
    )


EXPERTS = KERNELS.register(
    Kernel(
        name="experts",
        run=_run_experts,
        access=lambda o, _: _spans(o, ("normed", "chosen", "scores", "weights", "mixed"), ("mixed",)),
        cost=lambda o, p: cost_of(_experts_work(o, p), _EXPERTS_LAUNCHES),
        workspace=lambda o, p: _experts_work(o, p).workspace,
        check=_check_experts,
        fixed=lambda t, _: fused_for(t["normed"]) is not None,
    )
)


# experts_together: normed [1, H], scores [K], three weights of each of K experts -> mixed [1, H] in place


@functools.cache
def together_names(count: int) -> tuple[tuple[str, ...], ...]:
    """The weight operands of ``experts_together``: for each expert its tensors' names, with its place before them."""
    return tuple(tuple(f"{place}.{name}" for name in EXPERT_WEIGHTS) for place in range(count))


def _check_together(operands: Operands, params: Params) -> None:
    kernel = "experts_together"
    scores = operand(kernel, operands, "scores", 1, *FLOATS)
    names = together_names(scores.shape[0])
    exactly(kernel, operands, params, {"normed", "scores", "mixed", *(name for each in names for name in each)}, set())
    normed = operand(kernel, operands, "normed", 2, scores.dtype)
    size = normed.shape[1]
    shape(kernel, "normed", normed, (1, size))
    shape(kernel, "mixed", operand(kernel, operands, "mixed", 2, normed.dtype), normed.shape)
    wide = operand(kernel, operands, names[0][0], 2, normed.dtype).shape[0]
    first = operands[names[0][0]].offset
    for each in names:
        start = operand(kernel, operands, each[0], 2, normed.dtype).offset
        for name, other, wanted in zip(each, names[0], ((wide, size), (wide, size), (size, wide)), strict=True):
            view = operand(kernel, operands, name, 2, normed.dtype)
            shape(kernel, name, view, wanted)
            alike = view.offset - start == operands[other].offset - first and view.buffer == operands[each[0]].buffer
            want(alike, kernel, f"{name!r} does not lie in its expert as {other!r} does in the first")


def _together_work(operands: Operands) -> Work:
    wide, size = operands["0.gate_proj.weight"].shape
    return mixture_costs.experts_of_row_work(
        chosen=operands["scores"].shape[0], hidden_size=size, intermediate_size=wide,
        dtype=torch_dtype(operands["normed"]),
    )  # fmt: skip


def _run_together(tensors: Mapping[str, torch.Tensor], _: Params) -> None:
    experts = [
        dict(zip(EXPERT_WEIGHTS, (tensors[name] for name in each), strict=True))
        for each in together_names(tensors["scores"].shape[0])
    ]
    mixture.experts_together(tensors["normed"], tensors["scores"], experts, tensors["mixed"])


EXPERTS_TOGETHER = KERNELS.register(
    Kernel(
        name="experts_together",
        run=_run_together,
        access=lambda o, _: _spans(o, tuple(o), ("mixed",)),
        cost=lambda o, _: cost_of(_together_work(o), _EXPERTS_LAUNCHES),
        workspace=lambda o, _: _together_work(o).workspace,
        check=_check_together,
    )
)


# combine: mixed [B T, H], hidden [B, T, H] in place


def _check_combine(operands: Operands, params: Params) -> None:
    exactly("combine", operands, params, {"mixed", "hidden"}, set())
    hidden = operand("combine", operands, "hidden", 3, *FLOATS)
    batch, tokens, size = hidden.shape
    shape("combine", "mixed", operand("combine", operands, "mixed", 2, hidden.dtype), (batch * tokens, size))


def _combine_work(operands: Operands) -> Work:
    mixed = operands["mixed"]
    return mixture_costs.combine_work(rows=mixed.shape[0], hidden_size=mixed.shape[1], dtype=torch_dtype(mixed))


COMBINE = KERNELS.register(
    Kernel(
        name="combine",
        run=lambda t, _: mixture.combine(t["mixed"], t["hidden"]),
        access=lambda o, _: _spans(o, ("mixed", "hidden"), ("hidden",)),
        cost=lambda o, _: cost_of(_combine_work(o)),
        workspace=lambda o, _: _combine_work(o).workspace,
        check=_check_combine,
        fixed=lambda t, _: fused_for(t["mixed"]) is not None,
    )
)


def _spans(operands: Operands, reads: tuple[str, ...], writes: tuple[str, ...]) -> Access:
    def of(names: tuple[str, ...]) -> tuple[View, ...]:
        return tuple(operands[name] for name in names)

    return Access(tuple(view.span for view in of(reads)), tuple(view.span for view in of(writes)))
