"""A decoder layer, its halves and the head with fused kernels: what `xinfer_lab.qwen2.layers` says, in few launches.

A step (one new token of each sequence) allocates nothing whose size depends on its position, and reads the position
from device memory where it is given as a tensor: captured once, it may be replayed for every token.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn.functional import linear

from xinfer_lab.qwen2.attention import attend
from xinfer_lab.qwen2.fused.decode import attend_step
from xinfer_lab.qwen2.fused.mixture import experts_at, experts_row
from xinfer_lab.qwen2.fused.product import add_product, gated_products, product, projections
from xinfer_lab.qwen2.fused.small import gated, rms_norm, rotate_into
from xinfer_lab.qwen2.layer_spec import LayerSpec

__all__ = ["attention", "experts_at", "experts_row", "gated_products", "lm_head", "mlp", "mlp_rows", "rms_norm"]

Weights = Mapping[str, torch.Tensor]


def attention(
    hidden: torch.Tensor,
    weights: Weights,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int | torch.Tensor,
    spec: LayerSpec,
    frequencies: torch.Tensor,
) -> None:
    """`xinfer_lab.qwen2.layers.attention`, after its checks. ``frequencies``: of the rotary embedding, fp32 [D/2]."""
    batch, tokens, _ = hidden.shape
    heads, kv_heads, head_dim = spec.num_attention_heads, spec.num_key_value_heads, spec.head_dim
    normed = rms_norm(hidden, weights["input_layernorm.weight"], spec.rms_norm_eps)
    matrices = tuple(weights[f"self_attn.{name}_proj.weight"] for name in "qkv")
    biases = tuple(weights[f"self_attn.{name}_proj.bias"] for name in "qkv")
    if batch * tokens == 1:
        query, key, value = projections(normed, matrices, biases)  # type: ignore[arg-type]
    else:
        query, key, value = (linear(normed, *pair) for pair in zip(matrices, biases, strict=True))
    query = rotate_into(
        query.view(batch, tokens, heads, head_dim), key.view(batch, tokens, kv_heads, head_dim),
        value.view(batch, tokens, kv_heads, head_dim), keys, values, position, frequencies,
    )  # fmt: skip
    del normed, key, value
    if tokens == 1:
        mixed = attend_step(query, keys, values, position, spec.window)
    else:
        assert isinstance(position, int)
        mixed = attend(query, keys, values, position, spec.window)
    del query
    _add(hidden, mixed, weights["self_attn.o_proj.weight"])


def mlp(hidden: torch.Tensor, weights: Weights, eps: float) -> None:
    """The second half of a dense layer: hidden[B, T, H] in place."""
    normed = rms_norm(hidden, weights["post_attention_layernorm.weight"], eps)
    made = _gate(normed, weights["mlp.gate_proj.weight"], weights["mlp.up_proj.weight"])
    del normed
    _add(hidden, made, weights["mlp.down_proj.weight"])


def mlp_rows(rows: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """down (silu(gate x) * up x) for each row x of rows[R, H]."""
    made = _gate(rows, gate, up)
    if rows.shape[0] > 1:
        return linear(made, down)
    out = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
    product(made, down, out)
    return out


def _gate(rows: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if rows.numel() == rows.shape[-1]:
        return gated_products(rows, gate, up)
    return gated(linear(rows, gate), linear(rows, up))


def _add(hidden: torch.Tensor, made: torch.Tensor, weight: torch.Tensor) -> None:
    if hidden.numel() == hidden.shape[-1]:
        add_product(made, weight, hidden)
    else:
        hidden.add_(linear(made, weight))


def lm_head(hidden: torch.Tensor, norm: torch.Tensor, head: torch.Tensor, out: torch.Tensor, eps: float) -> None:
    """`xinfer_lab.qwen2.layers.lm_head`, after its checks."""
    tokens = hidden.shape[1]
    normed = rms_norm(hidden[:, tokens - out.shape[1] :], norm, eps)
    if normed.numel() == normed.shape[-1]:
        product(normed, head, out)
    else:
        torch.mm(normed.reshape(-1, normed.shape[-1]), head.t(), out=out.view(-1, head.shape[0]))
