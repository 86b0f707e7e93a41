"""Attention of a decode step in Triton: keys are cut into parts of the cache, by a length that lies in device memory.

One query a sequence. The number of parts, and so the launch, depends on shapes alone; how many keys each part reads
follows from the position, which a program loads. So the same launch serves every token (flash decoding, Dao et al.,
2023), and what was captured once can be replayed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from xinfer_lab.qwen2.attention import STEP_KEYS, step_parts

__all__ = ["attend_step"]


@triton.jit(do_not_specialize=["position"])  # type: ignore[untyped-decorator]
def _attend_part(  # type: ignore[no-untyped-def]
    query, keys, values, mixed, statistics, position, scale, batch,
    GROUP: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, WINDOW: tl.constexpr, PARTS: tl.constexpr,
    GROUP_BLOCK: tl.constexpr, DIM_BLOCK: tl.constexpr, KEYS: tl.constexpr, IN_MEMORY: tl.constexpr,
):  # fmt: skip
    part, kv_head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = tl.load(position).to(tl.int32) if IN_MEMORY else position.to(tl.int32)
    end = at + 1
    first = tl.maximum(end - WINDOW, 0) if WINDOW else 0
    share = tl.cdiv(tl.cdiv(end - first, PARTS), KEYS) * KEYS
    start = first + part * share
    stop = tl.minimum(start + share, end)

    heads, lanes, places = tl.arange(0, GROUP_BLOCK), tl.arange(0, DIM_BLOCK), tl.arange(0, KEYS)
    row = (sequence * KV_HEADS + kv_head) * GROUP + heads
    real = (heads < GROUP)[:, None] & (lanes < DIM)[None, :]
    q = tl.load(query + row[:, None] * DIM + lanes[None, :], mask=real, other=0.0)
    token = batch * KV_HEADS * DIM
    base = (sequence * KV_HEADS + kv_head) * DIM + lanes
    most = tl.full((GROUP_BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP_BLOCK,), tl.float32)
    mix = tl.zeros((GROUP_BLOCK, DIM_BLOCK), tl.float32)
    for begin in range(start, stop, KEYS):
        key = begin + places
        valid = (key < stop)[:, None] & (lanes < DIM)[None, :]
        offset = key.to(tl.int64)[:, None] * token + base[None, :]
        k = tl.load(keys + offset, mask=valid, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        score = tl.where((key < stop)[None, :], score, float("-inf"))
        larger = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp(score - larger[:, None])
        keep = tl.exp(most - larger)
        v = tl.load(values + offset, mask=valid, other=0.0)
        mix = mix * keep[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        total = total * keep + tl.sum(weight, axis=1)
        most = larger
    spot = ((sequence * KV_HEADS + kv_head) * GROUP + heads) * PARTS + part
    tl.store(mixed + spot[:, None] * DIM + lanes[None, :], mix, mask=real)
    tl.store(statistics + spot * 2, most, mask=heads < GROUP)
    tl.store(statistics + spot * 2 + 1, total, mask=heads < GROUP)


@triton.jit  # type: ignore[untyped-decorator]
def _join_parts(  # type: ignore[no-untyped-def]
    mixed, statistics, out, DIM: tl.constexpr, PARTS: tl.constexpr, DIM_BLOCK: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    parts, lanes = tl.arange(0, PARTS), tl.arange(0, DIM_BLOCK)
    most = tl.load(statistics + (head * PARTS + parts) * 2)
    total = tl.load(statistics + (head * PARTS + parts) * 2 + 1)
    # The first part always has a key, so that the largest is finite.
    weight = tl.exp(most - tl.max(most, axis=0))
    real = (lanes < DIM)[None, :] & (total > 0.0)[:, None]
    mix = tl.load(mixed + (head * PARTS + parts)[:, None] * DIM + lanes[None, :], mask=real, other=0.0)
    made = tl.sum(mix * weight[:, None], axis=0) / tl.sum(total * weight, axis=0)
    tl.store(out + head * DIM + lanes, made.to(out.dtype.element_ty), mask=lanes < DIM)


def attend_step(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int | torch.Tensor,
    window: int | None,
) -> torch.Tensor:
    """`xinfer_lab.qwen2.attention.attend` for one query a sequence: query[B, 1, heads, D] gives [B, 1, heads * D].

    ``position``: a number, or an int32 tensor of one element on the device.
    """
    batch, _, heads, dim = query.shape
    capacity, _, kv_heads, _ = keys.shape
    group = heads // kv_heads
    parts = step_parts(batch, kv_heads, capacity)
    mixed = torch.empty(batch * heads * parts * dim, dtype=torch.float32, device=query.device)
    statistics = torch.empty(batch * heads * parts * 2, dtype=torch.float32, device=query.device)
    out = torch.empty(batch, 1, heads * dim, dtype=query.dtype, device=query.device)
    wide = max(16, triton.next_power_of_2(dim))
    # Two tiles of keys and two of values lie in shared memory, of which many cards have 100 KiB a multiprocessor.
    keys_at_once = STEP_KEYS if wide * query.element_size() <= 256 else 32
    _attend_part[(parts, kv_heads, batch)](
        query, keys, values, mixed, statistics, position, dim**-0.5, batch,
        GROUP=group, KV_HEADS=kv_heads, DIM=dim, WINDOW=window or 0, PARTS=parts,
        GROUP_BLOCK=max(16, triton.next_power_of_2(group)), DIM_BLOCK=wide, KEYS=keys_at_once,
        IN_MEMORY=isinstance(position, torch.Tensor), num_warps=4, num_stages=2 if query.element_size() == 2 else 1,
    )  # fmt: skip
    _join_parts[(batch * heads,)](mixed, statistics, out, DIM=dim, PARTS=parts, DIM_BLOCK=wide, num_warps=4)
    return out
