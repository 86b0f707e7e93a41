"""The kernels of a Qwen2 forward pass: the layer maths of `xinfer_lab.qwen2` with their declarations for a device.

Importing this module registers ``embed``, ``decoder_layer``, ``attention`` (its first half), ``lm_head``, those of
`xinfer_lab.residency.mixture_kernels` and `xinfer_lab.residency.kv_kernels` and, from
`xinfer_lab.residency.codec.kernel`, ``decode_exponents``: a device knows the kernels that were registered before it was
made. Declared accesses are exact: weights without the padding between them, the cache by the tokens that are read and
written.

Their workspace is what a GPU needs, with whichever attention backend it has; an emulated device counts that too, since
its budget stands for a GPU's memory, so that a budget says the same on every machine. What the CPU's own kernels
allocate meanwhile is memory of the host. (bfloat16 on GPUs before compute capability 8.0 takes more than is declared.)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import replace

import torch

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Access, Kernel, Operands, Params
from xinfer_lab.device.records import Scalar, Span, View
from xinfer_lab.qwen2 import costs, layers
from xinfer_lab.qwen2.attention import RECENT_GPU
from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layer_spec import LayerSpec
from xinfer_lab.residency.codec.kernel import DECODE_EXPONENTS
from xinfer_lab.residency.kv_kernels import GATHER_PAGES, SCATTER_PAGES
from xinfer_lab.residency.mixture_kernels import COMBINE, EXPERT, ROUTE, SHARED_EXPERT
from xinfer_lab.residency.operands import FLOATS, cost_of, exactly, operand, shape, torch_dtype, want

__all__ = [
    "ATTENTION",
    "ATTENTION_WEIGHTS",
    "COMBINE",
    "DECODER_LAYER",
    "DECODE_EXPONENTS",
    "EMBED",
    "EXPERT",
    "GATHER_PAGES",
    "LAYER_WEIGHTS",
    "LM_HEAD",
    "ROUTE",
    "SCATTER_PAGES",
    "SHARED_EXPERT",
    "layer_params",
]

ATTENTION_WEIGHTS = (
    "input_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.k_proj.weight",
    "self_attn.k_proj.bias",
    "self_attn.v_proj.weight",
    "self_attn.v_proj.bias",
    "self_attn.o_proj.weight",
)
"""The weight operands of ``attention``: tensors by their names relative to the layer."""
LAYER_WEIGHTS = (
    *ATTENTION_WEIGHTS,
    "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)
"""The weight operands of ``decoder_layer``: a layer's tensors by their names relative to it."""


def layer_params(spec: LayerSpec, position: int) -> dict[str, int | float | None]:
    """The parameters of a ``decoder_layer`` or ``attention`` dispatch: the layer's spec, and where its first new token
    stands."""
    return {**spec.to_dict(), "position": position}


_LAYER_LAUNCHES, _ATTENTION_LAUNCHES, _HEAD_LAUNCHES = (9, 18), (6, 12), (2, 3)
"""Kernels that are launched on a GPU for a layer, for its first half and for the head: for one token of one sequence,
and for more; a few more or less by shape and version. Without Triton there are 47, 34 and 9."""


def _launches(counts: tuple[int, int], operands: Operands) -> int:
    batch, tokens, _ = operands["hidden"].shape
    return counts[batch * tokens > 1]


# embed: tokens [B, T] int64, weight [V, H] -> out [B, T, H]


def _check_embed(operands: Operands, params: Params) -> None:
    exactly("embed", operands, params, {"tokens", "weight", "out"}, set())
    tokens = operand("embed", operands, "tokens", 2, "int64")
    weight = operand("embed", operands, "weight", 2, *FLOATS)
    out = operand("embed", operands, "out", 3, weight.dtype)
    shape("embed", "out", out, (*tokens.shape, weight.shape[1]))


def _embed_work(operands: Operands) -> costs.Work:
    (batch, tokens), weight = operands["tokens"].shape, operands["weight"]
    return costs.embed_work(batch=batch, tokens=tokens, hidden_size=weight.shape[1], dtype=torch_dtype(weight))


EMBED = KERNELS.register(
    Kernel(
        name="embed",
        run=lambda t, _: layers.embed(t["tokens"], t["weight"], t["out"]),
        # Which rows are read depends on the tokens' values: declared is the whole table.
        access=lambda o, _: Access((o["tokens"].span, o["weight"].span), (o["out"].span,)),
        cost=lambda o, _: cost_of(_embed_work(o)),
        workspace=lambda o, _: _embed_work(o).workspace,
        check=_check_embed,
        fixed=lambda t, _: True,
        from_host=frozenset({"weight"}),
    )
)


# decoder_layer: hidden [B, T, H] in place, kv [2, capacity, B, KVH, D] in place, twelve weights; attention: eight


def _spec(params: Params, kernel: str = "decoder_layer") -> LayerSpec:
    try:
        return _spec_of(kernel, _spec_values(params))
    except TypeError:  # a value that cannot be hashed is no parameter either
        raise KernelError(f"{kernel}: parameters must be plain values, not {params!r}") from None


_spec_values = operator.itemgetter(*LayerSpec.__dataclass_fields__)


@functools.lru_cache(maxsize=256, typed=True)
def _spec_of(kernel: str, values: tuple[Scalar, ...]) -> LayerSpec:
    # Every dispatch comes through here several times, and all layers of a model have at most two specs.
    params = dict(zip(LayerSpec.__dataclass_fields__, values, strict=True))
    for name in ("num_attention_heads", "num_key_value_heads", "head_dim"):
        want(type(params[name]) is int, kernel, f"{name} must be an integer, not {params[name]!r}")
    for name in ("rms_norm_eps", "rope_theta"):
        value = params[name]
        ok = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
        want(ok, kernel, f"{name} must be a positive number, not {value!r}")
    window = params["window"]
    want(window is None or (type(window) is int and window > 0), kernel, f"window: {window!r}")
    return LayerSpec.from_dict(params)


_PARAMS = set(LayerSpec.__dataclass_fields__) | {"position"}


def _check_layer(operands: Operands, params: Params) -> None:
    kernel = "decoder_layer"
    exactly(kernel, operands, params, {"hidden", "kv", *LAYER_WEIGHTS}, _PARAMS)
    hidden = _check_first_half(kernel, operands, params)
    size = hidden.shape[2]
    wide = operand(kernel, operands, "mlp.gate_proj.weight", 2, hidden.dtype).shape[0]
    wanted = ((size,), (wide, size), (wide, size), (size, wide))
    _check_shapes(kernel, operands, LAYER_WEIGHTS[len(ATTENTION_WEIGHTS) :], wanted, hidden.dtype)


def _check_attention(operands: Operands, params: Params) -> None:
    exactly("attention", operands, params, {"hidden", "kv", *ATTENTION_WEIGHTS}, _PARAMS)
    _check_first_half("attention", operands, params)


def _check_shapes(
    kernel: str, operands: Operands, names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], dtype: str
) -> None:
    for name, wanted in zip(names, shapes, strict=True):
        shape(kernel, name, operand(kernel, operands, name, len(wanted), dtype), wanted)


def _check_first_half(kernel: str, operands: Operands, params: Params) -> View:
    spec = _spec(params, kernel)
    want(type(params["position"]) is int, kernel, f"position must be an integer, not {params['position']!r}")
    hidden = operand(kernel, operands, "hidden", 3, *FLOATS)
    batch, _, size = hidden.shape
    queries, keys = spec.num_attention_heads * spec.head_dim, spec.num_key_value_heads * spec.head_dim
    want(spec.num_key_value_heads > 0 and spec.head_dim > 0, kernel, f"heads and head_dim must be positive: {spec}")
    want(
        spec.head_dim % 2 == 0,
        kernel,
        f"head_dim must be even, since the rotary embedding turns pairs: {spec.head_dim}",
    )
    want(
        spec.num_attention_heads % spec.num_key_value_heads == 0 and queries > 0, kernel, f"heads do not divide: {spec}"
    )
    kv = operand(kernel, operands, "kv", 5, hidden.dtype)
    shape(kernel, "kv", kv, (2, kv.shape[1], batch, spec.num_key_value_heads, spec.head_dim))
    shapes = (
        (size,), (queries, size), (queries,), (keys, size), (keys,), (keys, size), (keys,), (size, queries),
    )  # fmt: skip
    _check_shapes(kernel, operands, ATTENTION_WEIGHTS, shapes, hidden.dtype)
    _check_position(operands, params, kernel)
    return hidden


def _check_position(operands: Operands, params: Params, kernel: str = "decoder_layer") -> None:
    position, tokens, room = params["position"], operands["hidden"].shape[1], operands["kv"].shape[1]
    if type(position) is not int or position < 0 or position + tokens > room:
        raise KernelError(
            f"{kernel}: the cache holds {room} tokens; position {position!r} and {tokens - 1} after it do not fit"
        )


def _layer_access(operands: Operands, params: Params) -> Access:
    hidden, kv = operands["hidden"], operands["kv"]
    position, window = params["position"], params["window"]
    assert isinstance(position, int)
    first = max(0, position - window + 1) if isinstance(window, int) else 0
    end = position + hidden.shape[1]
    weights = tuple(view.span for name, view in operands.items() if name not in ("hidden", "kv"))
    return Access(
        reads=(hidden.span, *weights, *_tokens_of(kv, first, end)),
        writes=(hidden.span, *_tokens_of(kv, position, end)),
    )


def _tokens_of(kv: View, first: int, end: int) -> tuple[Span, ...]:
    half = kv.nbytes // 2
    token = half // kv.shape[1]
    return tuple(Span(kv.buffer, kv.offset + which * half + first * token, (end - first) * token) for which in (0, 1))


_GPUS = (RECENT_GPU, replace(RECENT_GPU, flash=False))
"""What a dispatch may run on: GPUs with and without flash attention."""


def _layer_work(operands: Operands, params: Params) -> costs.Work:
    hidden, gate, position = operands["hidden"], operands.get("mlp.gate_proj.weight"), params["position"]
    assert isinstance(position, int)
    wide = gate.shape[0] if gate is not None else None
    return _work_of(_spec(params), hidden.shape, hidden.dtype, wide, operands["kv"].shape[1], position)


@functools.lru_cache(maxsize=1024)
def _work_of(
    spec: LayerSpec, hidden: tuple[int, ...], dtype: str, intermediate_size: int | None, capacity: int, position: int
) -> costs.Work:
    """The work of a layer, or (without an intermediate size) of its first half. All layers of a pass have the same."""
    works = []
    for traits in _GPUS:
        sizes = {"batch": hidden[0], "tokens": hidden[1], "hidden_size": hidden[2], "position": position}
        given = {**sizes, "dtype": getattr(torch, dtype), "traits": traits, "capacity": capacity}
        if intermediate_size is None:
            works.append(costs.attention_work(spec, **given))
        else:
            works.append(costs.decoder_layer_work(spec, intermediate_size=intermediate_size, **given))
    return replace(works[0], workspace=max(work.workspace for work in works))


def _run_layer(tensors: Mapping[str, torch.Tensor], params: Params) -> None:
    position = params["position"]
    assert isinstance(position, (int, torch.Tensor))
    keys, values = tensors["kv"]
    run = layers.decoder_layer if "mlp.gate_proj.weight" in tensors else layers.attention
    run(tensors["hidden"], tensors, keys, values, position, _spec(params))


def _is_step(tensors: Mapping[str, torch.Tensor], _: Params) -> bool:
    """Whether a layer's launches are the same for every position: one new token, and fused kernels to compute it."""
    return tensors["hidden"].shape[1] == 1 and fused_for(tensors["hidden"]) is not None


DECODER_LAYER = KERNELS.register(
    Kernel(
        name="decoder_layer",
        run=_run_layer,
        access=_layer_access,
        cost=lambda o, p: cost_of(_layer_work(o, p), _launches(_LAYER_LAUNCHES, o)),
        workspace=lambda o, p: _layer_work(o, p).workspace,
        check=_check_layer,
        varying=frozenset({"position"}),
        check_varying=_check_position,
        fixed=_is_step,
    )
)
ATTENTION = KERNELS.register(
    Kernel(
        name="attention",
        run=_run_layer,
        access=_layer_access,
        cost=lambda o, p: cost_of(_layer_work(o, p), _launches(_ATTENTION_LAUNCHES, o)),
        workspace=lambda o, p: _layer_work(o, p).workspace,
        check=_check_attention,
        varying=frozenset({"position"}),
        check_varying=_check_position,
        fixed=_is_step,
    )
)


# lm_head: hidden [B, T, H], norm [H], weight [V, H] -> out [B, N, V], the last N positions


def _check_head(operands: Operands, params: Params) -> None:
    exactly("lm_head", operands, params, {"hidden", "norm", "weight", "out"}, {"rms_norm_eps"})
    eps = params["rms_norm_eps"]
    want(isinstance(eps, float) and 0 < eps < 1, "lm_head", f"rms_norm_eps must be between 0 and 1, not {eps!r}")
    hidden = operand("lm_head", operands, "hidden", 3, *FLOATS)
    batch, tokens, size = hidden.shape
    shape("lm_head", "norm", operand("lm_head", operands, "norm", 1, hidden.dtype), (size,))
    weight = operand("lm_head", operands, "weight", 2, hidden.dtype)
    shape("lm_head", "weight", weight, (weight.shape[0], size))
    out = operand("lm_head", operands, "out", 3, hidden.dtype)
    shape("lm_head", "out", out, (batch, out.shape[1], weight.shape[0]))
    want(out.shape[1] <= tokens, "lm_head", f"{out.shape[1]} positions were asked for, but only {tokens} are there")


def _head_work(operands: Operands) -> costs.Work:
    out, hidden = operands["out"], operands["hidden"]
    batch, positions, vocab = out.shape
    return costs.lm_head_work(
        batch=batch, positions=positions, hidden_size=hidden.shape[2], vocab_size=vocab, dtype=torch_dtype(hidden)
    )


def _head_access(operands: Operands, _: Params) -> Access:
    hidden, positions = operands["hidden"], operands["out"].shape[1]
    batch, tokens, _size = hidden.shape
    row = hidden.nbytes // (batch * tokens)
    read = tuple(
        Span(hidden.buffer, hidden.offset + (b * tokens + tokens - positions) * row, positions * row)
        for b in range(batch)
    )
    return Access((*read, operands["norm"].span, operands["weight"].span), (operands["out"].span,))


LM_HEAD = KERNELS.register(
    Kernel(
        name="lm_head",
        run=lambda t, p: layers.lm_head(t["hidden"], t["norm"], t["weight"], t["out"], float(p["rms_norm_eps"] or 0)),
        access=_head_access,
        cost=lambda o, _: cost_of(_head_work(o), _launches(_HEAD_LAUNCHES, o)),
        workspace=lambda o, _: _head_work(o).workspace,
        check=_check_head,
        fixed=lambda t, _: fused_for(t["hidden"]) is not None,
    )
)
