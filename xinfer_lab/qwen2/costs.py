"""What the functions of `layers` cost in FLOPs, bytes and workspace, from shapes alone.

The virtual clock, the plan and the memory budget rest on these figures, before anything has run. Conventions: a matrix
product of [m, k] and [k, n] is 2 m k n FLOPs; norms, activations and the rotary embedding are left out (well under 1 %
for real sizes). Bytes count each operand once, as if caches were perfect: the usual roofline figure. Workspace is an
upper bound on what a call allocates at any one time beside its operands. It does not include the private workspaces of
cuBLAS (a fixed size per handle, allocated once) and oneDNN (some tens of KiB a thread), nor what PyTorch's caching
allocator rounds up.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch

from xinfer_lab.qwen2.attention import (
    MASK_ALIGNMENT,
    RECENT_GPU,
    AttentionPlan,
    DeviceTraits,
    plan_attention,
    step_parts,
)
from xinfer_lab.qwen2.layer_spec import LayerSpec

__all__ = [
    "SLACK",
    "Work",
    "attention_pairs",
    "attention_work",
    "decoder_layer_work",
    "embed_work",
    "lm_head_work",
    "norm_workspace",
]

SLACK = 32 * 1024
"""Bytes for the many small tensors of a call."""

_FLASH_SLOTS = 512
"""Blocks that flash attention takes a GPU to run at once: 2 a multiprocessor, of which no GPU so far has over 256."""

_KEPT = 1024
"""Works of layers that are remembered: each dispatch asks for its own several times, and all layers of a pass have the
same."""


@dataclass(frozen=True)
class Work:
    """`flops`, of which attention spends `pair_flops` on (query, key) pairs; `bytes_read` and `bytes_written` of device
    memory; `workspace` in bytes."""

    flops: int
    bytes_read: int
    bytes_written: int
    workspace: int
    pair_flops: int = 0


def embed_work(*, batch: int, tokens: int, hidden_size: int, dtype: torch.dtype) -> Work:
    """A row of the table for each int64 token."""
    rows = batch * tokens * hidden_size * dtype.itemsize
    return Work(0, batch * tokens * 8 + rows, rows, SLACK)


def lm_head_work(*, batch: int, positions: int, hidden_size: int, vocab_size: int, dtype: torch.dtype) -> Work:
    """Norm and one product for `positions` positions of each sequence (out.shape[1])."""
    rows = batch * positions
    weights = (vocab_size + 1) * hidden_size
    return Work(
        flops=2 * rows * hidden_size * vocab_size,
        bytes_read=(weights + rows * hidden_size) * dtype.itemsize,
        bytes_written=rows * vocab_size * dtype.itemsize,
        workspace=norm_workspace(rows * hidden_size, dtype) + SLACK,
    )


@lru_cache(maxsize=_KEPT)
def decoder_layer_work(
    spec: LayerSpec,
    *,
    batch: int,
    tokens: int,
    position: int,
    hidden_size: int,
    intermediate_size: int,
    dtype: torch.dtype,
    traits: DeviceTraits = RECENT_GPU,
    capacity: int | None = None,
) -> Work:
    """A layer over `tokens` new tokens of each sequence, at `position`: its attention, and its MLP."""
    first = attention_work(
        spec, batch=batch, tokens=tokens, position=position, hidden_size=hidden_size, dtype=dtype, traits=traits,
        capacity=capacity,
    )  # fmt: skip
    size, rows = dtype.itemsize, batch * tokens
    weights = 3 * hidden_size * intermediate_size
    gated = (2 * max(intermediate_size, hidden_size) + hidden_size) * rows * size
    return Work(
        flops=first.flops + 2 * rows * weights,
        bytes_read=first.bytes_read + (weights + hidden_size) * size,
        bytes_written=first.bytes_written,
        workspace=max(first.workspace, SLACK + _rotation(spec, tokens, size) + gated),
        pair_flops=first.pair_flops,
    )


@lru_cache(maxsize=_KEPT)
def attention_work(
    spec: LayerSpec,
    *,
    batch: int,
    tokens: int,
    position: int,
    hidden_size: int,
    dtype: torch.dtype,
    traits: DeviceTraits = RECENT_GPU,
    capacity: int | None = None,
) -> Work:
    """The first half of a layer over `tokens` new tokens of each sequence, at `position`.

    FLOPs: 2 for each weight and token (Kaplan et al., 2020, section 2.1), and 4 D for each query head and visible
    (query, key) pair: 2 D for q k, 2 D for the weighted sum of values. Masked pairs are not counted, whether or not a
    backend computes them. `traits` matter to the workspace alone, since they choose the attention backend; so does
    `capacity`, the tokens that the cache has room for (default: no more than are needed).
    """
    queries, keys = spec.num_attention_heads * spec.head_dim, spec.num_key_value_heads * spec.head_dim
    size, rows = dtype.itemsize, batch * tokens
    matrices = 2 * hidden_size * (queries + keys)
    vectors = hidden_size + queries + 2 * keys
    plan = plan_attention(traits, dtype, spec.head_dim, tokens, position, spec.window)
    span = plan.end_key - plan.first_key
    pairs = attention_pairs(tokens, position, spec.window)
    pair_flops = 4 * batch * spec.num_attention_heads * spec.head_dim * pairs
    projections = (hidden_size + queries + 2 * keys + 2 * max(queries, keys)) * rows * size
    attention = rows * queries * size + _attention_workspace(spec, plan, batch, tokens, dtype)
    if traits.kind == "cuda" and tokens == 1:
        # With Triton, a step keeps what each part of the keys gives: `xinfer_lab.qwen2.fused.decode`.
        parts = step_parts(batch, spec.num_key_value_heads, capacity or position + 1)
        kept = 4 * parts * batch * spec.num_attention_heads * (spec.head_dim + 2)
        attention = max(attention, 2 * rows * queries * size + kept)
    output = (hidden_size + queries) * rows * size
    return Work(
        flops=2 * rows * matrices + pair_flops,
        bytes_read=(matrices + vectors + rows * hidden_size + 2 * batch * span * keys) * size,
        bytes_written=(rows * hidden_size + 2 * rows * keys) * size,
        workspace=SLACK
        + _rotation(spec, tokens, size)
        + max(norm_workspace(rows * hidden_size, dtype), projections, attention, output),
        pair_flops=pair_flops,
    )


def _rotation(spec: LayerSpec, tokens: int, size: int) -> int:
    return tokens * spec.head_dim * (4 + 4 + size)


def attention_pairs(tokens: int, position: int, window: int | None) -> int:
    """Visible (query, key) pairs of one head: the sum over queries i of min(i + 1, window)."""

    def triangle(queries: int) -> int:
        if window is None or queries <= window:
            return queries * (queries + 1) // 2
        return window * (window + 1) // 2 + (queries - window) * window

    return triangle(position + tokens) - triangle(position)


def norm_workspace(elements: int, dtype: torch.dtype) -> int:
    """Bytes that a norm of so many elements allocates: the product and the result in fp32; for narrower types two fp32
    copies and the narrow one."""
    return elements * (8 if dtype == torch.float32 else 8 + dtype.itemsize)


def _attention_workspace(spec: LayerSpec, plan: AttentionPlan, batch: int, tokens: int, dtype: torch.dtype) -> int:
    heads, head_dim, span = spec.num_attention_heads, spec.head_dim, plan.end_key - plan.first_key
    size, rows = dtype.itemsize, batch * tokens * heads
    queries = rows * head_dim
    cached = batch * span * spec.num_key_value_heads * head_dim
    group = heads // spec.num_key_value_heads
    padded = -(-span // MASK_ALIGNMENT) * MASK_ALIGNMENT
    arranged = 2 * queries * size  # queries rearranged for the backend, and the output rearranged for what follows
    if plan.backend == "math":
        # fp32 copies of what is narrower; scaled queries and keys; the output. Scores before and after the mask and
        # after the softmax; the mask as bool and as float.
        copied = 4 * (2 * queries + cached) if size == 4 else 4 * (3 * queries + 3 * cached)
        scores = rows * span * (12 if plan.masking == "none" else 13)
        mask = 0 if plan.masking == "none" else tokens * span * (3 + 5 * group)
        return arranged + copied + scores + mask
    statistics = batch * heads * -(-tokens // 32) * 32 * 4
    if plan.backend == "flash":
        accumulators = _flash_splits(spec, plan, batch, tokens) * 4 * (queries + rows)
        return arranged + queries * size + statistics + accumulators
    mask = tokens * padded * (size + 4) if plan.masking == "explicit" else 0
    return arranged + queries * (size + 4) + statistics + mask


def _flash_splits(spec: LayerSpec, plan: AttentionPlan, batch: int, tokens: int) -> int:
    """At most into how many parts flash attention (Dao, 2023; its num_splits_heuristic) cuts the keys, each with fp32
    results of its own: none where blocks of 64 queries fill 0.8 of the GPU, else until 0.85 of the best fill, which any
    GPU reaches within 7 rounds."""
    heads, rows = spec.num_attention_heads, tokens
    if plan.masking == "none":
        heads, rows = spec.num_key_value_heads, heads // spec.num_key_value_heads
    blocks = batch * heads * -(-rows // 64)
    if blocks >= 0.8 * _FLASH_SLOTS:
        return 0
    keys_a_block = 256 if spec.head_dim <= 64 else 128 if spec.head_dim <= 128 else 64
    return min(128, -(-(plan.end_key - plan.first_key) // keys_a_block), -(-7 * _FLASH_SLOTS // blocks))
