"""The three functions of a Qwen2 forward pass: embed, decoder_layer, lm_head; and the halves of a layer.

Each writes into tensors that the caller provides, so that a device can say beforehand which bytes a call reads and
writes. What a function needs in between comes from PyTorch's allocator and is given back on return
(`xinfer_lab.qwen2.costs` says how much). On CUDA they enqueue work on the current stream and return.

This is the text to read. On a GPU with Triton the same is computed by fewer, fused kernels (`xinfer_lab.qwen2.fused`),
equal up to rounding.
"""

from collections.abc import Mapping
from functools import lru_cache

import torch
from torch.nn.functional import linear, silu

from xinfer_lab.qwen2.attention import attend
from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layer_spec import LayerSpec, layer_spec

__all__ = ["LayerSpec", "attention", "decoder_layer", "embed", "layer_spec", "lm_head", "rms_norm"]


def embed(tokens: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
    """out[B, T, H] = weight[V, H] at tokens[B, T] (int64, each in 0..V-1; IndexError on CPU otherwise)."""
    if out.shape != (*tokens.shape, weight.shape[1]) or not out.is_contiguous():
        raise ValueError(
            f"out must be contiguous of shape {(*tokens.shape, weight.shape[1])}, "
            f"but has shape {tuple(out.shape)} and strides {out.stride()}"
        )
    torch.index_select(weight, 0, tokens.reshape(-1), out=out.view(-1, weight.shape[1]))


def decoder_layer(
    hidden: torch.Tensor,
    weights: Mapping[str, torch.Tensor],
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int | torch.Tensor,
    spec: LayerSpec,
) -> None:
    """One decoder layer over T new tokens, in place.

    `attention`, then the MLP. `weights` has the twelve tensors of a layer by their names relative to it
    (`layout.tensor_shapes`), all of hidden's dtype.
    """
    attention(hidden, weights, keys, values, position, spec)
    if (fused := fused_for(hidden)) is not None:
        fused.mlp(hidden, weights, spec.rms_norm_eps)
        return
    normed = rms_norm(hidden, weights["post_attention_layernorm.weight"], spec.rms_norm_eps)
    gate = silu(linear(normed, weights["mlp.gate_proj.weight"]), inplace=True)
    gate.mul_(linear(normed, weights["mlp.up_proj.weight"]))
    hidden.add_(linear(gate, weights["mlp.down_proj.weight"]))


def attention(
    hidden: torch.Tensor,
    weights: Mapping[str, torch.Tensor],
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int | torch.Tensor,
    spec: LayerSpec,
) -> None:
    """The first half of a layer over T new tokens, in place: norm, attention, residual connection.

    hidden[B, T, H] is updated. `weights` has the layer's tensors of the group "attention" (and may have others). keys
    and values [capacity, B, KVH, D] are the layer's cache, token first so that what is written,
    [position : position + T], is one range of bytes; [0 : position] must hold the tokens before. Raises ValueError,
    before anything is written, when the cache does not fit. For T = 1 `position` may be an int32 tensor of one element
    on hidden's device: then the same calls serve every position that the cache has room for.
    """
    batch, tokens, _ = hidden.shape
    heads, kv_heads, head_dim = spec.num_attention_heads, spec.num_key_value_heads, spec.head_dim
    fused = fused_for(hidden)
    if isinstance(position, torch.Tensor) and fused is None:
        position = int(position)
    _check_cache(keys, values, hidden, 0 if isinstance(position, torch.Tensor) else position, spec)
    if fused is not None:
        frequencies = _inverse_frequencies(spec.rope_theta, head_dim, hidden.device)
        fused.attention(hidden, weights, keys, values, position, spec, frequencies)
        return
    assert isinstance(position, int)

    normed = rms_norm(hidden, weights["input_layernorm.weight"], spec.rms_norm_eps)
    query, key, value = (
        linear(normed, weights[f"self_attn.{name}_proj.weight"], weights[f"self_attn.{name}_proj.bias"])
        for name in "qkv"
    )
    cos, sin = _rotation(position, tokens, spec.rope_theta, head_dim, hidden)
    new = slice(position, position + tokens)
    keys[new].copy_(_rotate(key.view(batch, tokens, kv_heads, head_dim), cos, sin).transpose(0, 1))
    values[new].copy_(value.view(batch, tokens, kv_heads, head_dim).transpose(0, 1))
    query = _rotate(query.view(batch, tokens, heads, head_dim), cos, sin)
    del normed, key, value
    mixed = attend(query, keys, values, position, spec.window)
    del query
    hidden.add_(linear(mixed, weights["self_attn.o_proj.weight"]))


def lm_head(hidden: torch.Tensor, norm: torch.Tensor, head: torch.Tensor, out: torch.Tensor, eps: float) -> None:
    """Logits of the last N positions: out[B, N, V] from hidden[B, T, H], norm[H], head[V, H]; 1 <= N <= T.

    N = T gives every position, N = 1 the one that the next token is chosen from.
    """
    batch, tokens, size = hidden.shape
    if out.dim() != 3 or (out.shape[0], out.shape[2]) != (batch, head.shape[0]) or not 1 <= out.shape[1] <= tokens:
        raise ValueError(
            f"out must have the shape ({batch}, 1 to {tokens}, {head.shape[0]}), but has {tuple(out.shape)}"
        )
    if not out.is_contiguous():
        raise ValueError(f"out must be contiguous, but has strides {out.stride()}")
    if (fused := fused_for(hidden)) is not None:
        fused.lm_head(hidden, norm, head, out, eps)
        return
    normed = rms_norm(hidden[:, tokens - out.shape[1] :], norm, eps)
    torch.mm(normed.reshape(-1, size), head.t(), out=out.view(-1, head.shape[0]))


def rms_norm(hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """hidden / sqrt(mean(hidden^2) + eps) in fp32, cast back to hidden's dtype, then times weight."""
    wide = hidden.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale).to(hidden.dtype) * weight


def _check_cache(
    keys: torch.Tensor, values: torch.Tensor, hidden: torch.Tensor, position: int, spec: LayerSpec
) -> None:
    batch, tokens, _ = hidden.shape
    wanted = (batch, spec.num_key_value_heads, spec.head_dim)
    for name, cache in (("keys", keys), ("values", values)):
        if cache.shape[1:] != wanted or cache.dtype != hidden.dtype or not cache.is_contiguous():
            raise ValueError(
                f"{name} must be contiguous {hidden.dtype} of shape [capacity, {batch}, {wanted[1]}, "
                f"{wanted[2]}], but is {cache.dtype} of shape {list(cache.shape)} "
                f"with strides {cache.stride()}"
            )
        if position < 0 or position + tokens > cache.shape[0]:
            raise ValueError(
                f"{name} holds {cache.shape[0]} tokens, but positions {position} to "
                f"{position + tokens - 1} are to be written; allocate a larger cache"
            )


@lru_cache(maxsize=32)
def _inverse_frequencies(theta: float, head_dim: int, device: torch.device) -> torch.Tensor:
    # On the host once for every device, since pow differs by a rounding between devices and grows with the position.
    with torch.inference_mode(False):
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device="cpu") / head_dim
        return (1.0 / (theta**exponents)).to(device)


def _rotation(
    position: int, tokens: int, theta: float, head_dim: int, like: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine [T, 1, D/2] of position times frequency, in fp32, then cast."""
    positions = torch.arange(position, position + tokens, dtype=torch.float32, device=like.device)
    angles = (positions.unsqueeze(1) * _inverse_frequencies(theta, head_dim, like.device)).unsqueeze(1)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding (Su et al., 2021) of heads[B, T, N, D]: element i turns with element i + D/2."""
    low, high = heads.chunk(2, dim=-1)
    out = torch.empty_like(heads)
    out_low, out_high = out.chunk(2, dim=-1)
    torch.mul(low, cos, out=out_low).sub_(high * sin)
    torch.mul(high, cos, out=out_high).add_(low * sin)
    return out
