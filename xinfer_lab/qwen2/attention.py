"""Causal attention over a token-major cache, with the SDPA backend pinned by one rule.

PyTorch otherwise picks a backend from what it finds at run time (alignment, flags, versions), and two backends round
differently: streamed and resident logits would differ in the last bit, and nobody could tell that from a fault. The
rule here depends on the device, the type and the shapes alone.
"""

from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

__all__ = [
    "MASK_ALIGNMENT", "RECENT_GPU", "STEP_KEYS", "AttentionPlan", "DeviceTraits", "attend", "plan_attention",
    "step_parts", "traits_of",
]  # fmt: skip

MASK_ALIGNMENT = 16
"""Elements to which the rows of an additive mask are padded; the memory-efficient backend would copy it otherwise."""


STEP_KEYS = 64
"""Keys that a fused decode step works on at a time (`xinfer_lab.qwen2.fused.decode`)."""

_STEP_PROGRAMS, _MOST_PARTS = 256, 64


@dataclass(frozen=True)
class DeviceTraits:
    """What the rule needs to know of a device: `kind` ("cpu", "cuda", ...), whether flash attention is there (built in
    and compute capability 8.0 or more), and whether bfloat16 is (compute capability 8.0 or more)."""

    kind: str
    flash: bool = False
    bfloat16: bool = False


RECENT_GPU = DeviceTraits("cuda", flash=True, bfloat16=True)
"""An NVIDIA GPU of compute capability 8.0 or more (Ampere, 2020, and later)."""


@dataclass(frozen=True)
class AttentionPlan:
    """How one call is computed: `backend` ("math", "flash", "efficient"), `masking` ("none", "causal", "explicit"), and
    the keys that are read, `first_key` up to but not including `end_key`."""

    backend: str
    masking: str
    first_key: int
    end_key: int


def traits_of(device: torch.device) -> DeviceTraits:
    """The traits of a device of this machine."""
    if device.type != "cuda":
        return DeviceTraits(device.type)
    recent = torch.cuda.get_device_capability(device) >= (8, 0)
    return DeviceTraits("cuda", flash=recent and torch.backends.cuda.is_flash_attention_available(), bfloat16=recent)


def plan_attention(
    traits: DeviceTraits, dtype: torch.dtype, head_dim: int, tokens: int, position: int, window: int | None
) -> AttentionPlan:
    """The rule. `tokens` queries stand at `position`..`position + tokens - 1`; `window` as in `LayerSpec`.

    * One query needs no mask: the keys outside its window are left out. Queries from position 0 on, none of which has
      a key outside its window, are plainly causal. Everything else gets an explicit mask.
    * Not CUDA, or a head_dim that fused kernels do not take (no multiple of 8, over 256): math.
    * CUDA fp16 and bf16 without an explicit mask: flash (which takes none). Everything else on CUDA: memory-efficient.
    """
    first = 0 if window is None else max(0, position - window + 1)
    end = position + tokens
    if tokens == 1:
        masking = "none"
    elif position == 0 and (window is None or window >= tokens):
        masking = "causal"
    else:
        masking = "explicit"
    if traits.kind != "cuda" or head_dim % 8 or head_dim > 256 or (dtype == torch.bfloat16 and not traits.bfloat16):
        backend = "math"
    elif dtype != torch.float32 and masking != "explicit" and traits.flash:
        backend = "flash"
    else:
        backend = "efficient"
    return AttentionPlan(backend, masking, first, end)


def step_parts(batch: int, kv_heads: int, capacity: int) -> int:
    """Into how many parts a fused decode step cuts the keys, each a program of its own: a power of two.

    It depends on the shapes alone, and not on the card: another number would be another order of summation.
    """
    wanted = min(_STEP_PROGRAMS / (batch * kv_heads), -(-capacity // STEP_KEYS), _MOST_PARTS)
    parts = 1
    while parts < wanted:
        parts *= 2
    return parts


def attend(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: int, window: int | None
) -> torch.Tensor:
    """Softmax(q k / sqrt(D)) v for queries[B, T, heads, D] at `position`, over keys and values [capacity, B, KVH, D].

    The cache already holds the keys and values of these T tokens. Returns [B, T, heads * D], contiguous. Query head h
    reads key head h // (heads / KVH) (grouped-query attention, Ainslie et al., 2023); no key is repeated in memory.
    """
    batch, tokens, heads, head_dim = queries.shape
    kv_heads = keys.shape[2]
    group = heads // kv_heads
    plan = plan_attention(traits_of(queries.device), queries.dtype, head_dim, tokens, position, window)
    keys, values = keys[plan.first_key : plan.end_key], values[plan.first_key : plan.end_key]

    if plan.backend == "math" or plan.masking == "none":
        # The queries of a group become rows of one head, so that each key head meets them in one product.
        rows = queries.view(batch, tokens, kv_heads, group, head_dim).permute(0, 2, 3, 1, 4)
        rows = rows.reshape(batch, kv_heads, group * tokens, head_dim)
        mask = None if plan.masking == "none" else _visible(plan, tokens, position, window, queries.device)
        if mask is not None:
            mask = mask.expand(group, tokens, -1).reshape(group * tokens, -1)
        out = _sdpa(plan, rows, keys.permute(1, 2, 0, 3), values.permute(1, 2, 0, 3), mask)
        out = out.view(batch, kv_heads, group, tokens, head_dim).permute(0, 3, 1, 2, 4)
    elif plan.backend == "flash":
        out = _sdpa(
            plan,
            queries.transpose(1, 2),
            keys.permute(1, 2, 0, 3),
            values.permute(1, 2, 0, 3),
            None,
            causal=True,
            grouped=group > 1,
        ).transpose(1, 2)
    else:
        # Key heads go into the batch dimension, where a group's heads can share one by a stride of 0.
        one_head = (batch * kv_heads, group, plan.end_key - plan.first_key, head_dim)
        rows = queries.view(batch, tokens, kv_heads, group, head_dim).permute(0, 2, 3, 1, 4)
        rows = rows.reshape(batch * kv_heads, group, tokens, head_dim)
        shared = [cache.flatten(1, 2).transpose(0, 1).unsqueeze(1).expand(one_head) for cache in (keys, values)]
        causal = plan.masking == "causal"
        mask = None if causal else _additive(plan, tokens, position, window, queries)
        out = _sdpa(plan, rows, shared[0], shared[1], mask, causal=causal)
        out = out.view(batch, kv_heads, group, tokens, head_dim).permute(0, 3, 1, 2, 4)
    return out.reshape(batch, tokens, heads * head_dim)


_BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def _sdpa(
    plan: AttentionPlan,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool = False,
    grouped: bool = False,
) -> torch.Tensor:
    with sdpa_kernel(_BACKENDS[plan.backend]):
        return scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal, enable_gqa=grouped)


def _visible(
    plan: AttentionPlan, tokens: int, position: int, window: int | None, device: torch.device, end: int | None = None
) -> torch.Tensor:
    """Bool [T, keys]: key j is visible to query i when i - window < j <= i."""
    query = torch.arange(position, position + tokens, device=device).unsqueeze(1)
    key = torch.arange(plan.first_key, plan.end_key if end is None else end, device=device)
    visible = key <= query
    return visible if window is None else visible.logical_and_(key > query - window)


def _additive(plan: AttentionPlan, tokens: int, position: int, window: int | None, like: torch.Tensor) -> torch.Tensor:
    count = plan.end_key - plan.first_key
    padded = -(-count // MASK_ALIGNMENT) * MASK_ALIGNMENT
    visible = _visible(plan, tokens, position, window, like.device, plan.first_key + padded)
    mask = torch.zeros(tokens, padded, dtype=like.dtype, device=like.device)
    return mask.masked_fill_(visible.logical_not_(), float("-inf"))[:, :count]
