"""Triton kernels for what is small and bound by memory: norm, rotary embedding with the cache's new rows, SiLU * up."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["gated", "rms_norm", "rotate_into"]


@triton.jit  # type: ignore[untyped-decorator]
def _rms_norm(x, weight, out, size, stride, eps, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < size
    wide = tl.load(x + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=0) / size + eps)
    # Rounded before the weight, as the plain text has it.
    made = (wide * scale).to(out.dtype.element_ty) * tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(out + row * size + columns, made, mask=inside)


def rms_norm(hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`xinfer_lab.qwen2.layers.rms_norm` of hidden[..., H] in one launch."""
    size = hidden.shape[-1]
    rows = hidden.reshape(-1, size)
    out = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    block = triton.next_power_of_2(size)
    warps = min(16, max(1, block // 512))
    _rms_norm[(rows.shape[0],)](rows, weight, out, size, rows.stride(0), eps, BLOCK=block, num_warps=warps)
    return out


@triton.jit(do_not_specialize=["position", "tokens"])  # type: ignore[untyped-decorator]
def _rotate_into(  # type: ignore[no-untyped-def]
    query, key, value, rotated, keys, values, frequencies, position, tokens, batch,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, IN_MEMORY: tl.constexpr,
):  # fmt: skip
    """One head of one row. Query heads first, then key heads; a key head's program also moves its values."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    sequence, token = row // tokens, row % tokens
    start = tl.load(position).to(tl.int64) if IN_MEMORY else position.to(tl.int64)
    place = start + token
    lanes = tl.arange(0, BLOCK)
    inside = lanes < HALF
    angle = place.to(tl.float32) * tl.load(frequencies + lanes, mask=inside, other=0.0)
    dtype = keys.dtype.element_ty
    cos, sin = tl.cos(angle).to(dtype), tl.sin(angle).to(dtype)
    if head < HEADS:
        source = query + (row * HEADS + head) * 2 * HALF
        target = rotated + (row * HEADS + head) * 2 * HALF
    else:
        source = key + (row * KV_HEADS + head - HEADS) * 2 * HALF
        target = keys + ((place * batch + sequence) * KV_HEADS + head - HEADS) * 2 * HALF
    low = tl.load(source + lanes, mask=inside, other=0.0)
    high = tl.load(source + HALF + lanes, mask=inside, other=0.0)
    # Each product is rounded, as the plain text has it.
    tl.store(target + lanes, ((low * cos).to(dtype) - (high * sin).to(dtype)).to(dtype), mask=inside)
    tl.store(target + HALF + lanes, ((high * cos).to(dtype) + (low * sin).to(dtype)).to(dtype), mask=inside)
    if head >= HEADS:
        source = value + (row * KV_HEADS + head - HEADS) * 2 * HALF
        target = values + ((place * batch + sequence) * KV_HEADS + head - HEADS) * 2 * HALF
        tl.store(target + lanes, tl.load(source + lanes, mask=inside, other=0.0), mask=inside)
        tl.store(target + HALF + lanes, tl.load(source + HALF + lanes, mask=inside, other=0.0), mask=inside)


def rotate_into(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int | torch.Tensor,
    frequencies: torch.Tensor,
) -> torch.Tensor:
    """query[B, T, heads, D] with its rotary embedding; key and value [B, T, KVH, D] go into the cache at ``position``.

    ``position``: a number, or an int32 tensor of one element that holds it on the device. All are contiguous.
    """
    batch, tokens, heads, head_dim = query.shape
    rotated = torch.empty_like(query)
    half = head_dim // 2
    _rotate_into[(batch * tokens, heads + key.shape[2])](
        query, key, value, rotated, keys, values, frequencies, position, tokens, batch,
        HEADS=heads, KV_HEADS=key.shape[2], HALF=half, BLOCK=triton.next_power_of_2(half),
        IN_MEMORY=isinstance(position, torch.Tensor), num_warps=1,
    )  # fmt: skip
    return rotated


@triton.jit  # type: ignore[untyped-decorator]
def _gated(gate, up, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    wide = tl.load(gate + places, mask=inside, other=0.0).to(tl.float32)
    made = (wide / (1.0 + tl.exp(-wide))).to(out.dtype.element_ty)
    tl.store(out + places, made * tl.load(up + places, mask=inside, other=0.0), mask=inside)


def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up, into gate's memory; both contiguous and of one shape."""
    count, block = gate.numel(), 2048
    _gated[(triton.cdiv(count, block),)](gate, up, gate, count, BLOCK=block, num_warps=8)
    return gate
