"""Decoding with plain torch operations: what the kernel does without Triton, and what its bytes are checked against."""

from __future__ import annotations

import torch

from xinfer_lab.residency.codec.format import BLOCK, DECODE_CHUNK, GROUP, Coding
from xinfer_lab.residency.codec.packing import unpack

__all__ = ["decode", "decode_into"]


def decode(coding: Coding | None, encoded: torch.Tensor) -> torch.Tensor:
    """The weights, bfloat16 1-D, of which ``encoded`` (uint8, 1-D) is the coded form; without a coding, the bytes."""
    if coding is None:
        return encoded.contiguous().view(torch.bfloat16)
    parts = {name: encoded[s.offset : s.offset + s.nbytes] for name, s in coding.sections.items()}
    out = torch.empty(coding.count, dtype=torch.bfloat16, device=encoded.device)
    offsets = parts["offsets"].view(torch.int32) if coding.escapes else None
    decode_into(out, parts["sign_mantissa"], parts["codes"], offsets, parts.get("escapes"), coding.width, coding.base)
    return out


def decode_into(
    out: torch.Tensor,
    sign_mantissa: torch.Tensor,
    codes: torch.Tensor,
    offsets: torch.Tensor | None,
    escapes: torch.Tensor | None,
    width: int,
    base: int,
) -> None:
    """Decode the sections of a coded tensor into ``out`` (bfloat16 [n]).

    ``offsets`` and ``escapes`` are both None or both given. Whatever the sections hold, nothing outside of them is
    read: an escape that is not there is taken from the nearest one that is.
    """
    bits = out.view(torch.int16)
    count = bits.numel()
    whole = count // BLOCK * BLOCK
    spans = [(start, min(start + DECODE_CHUNK, whole)) for start in range(0, whole, DECODE_CHUNK)]
    if whole < count:
        spans.append((whole, count))
    for start, end in spans:
        packed = codes[start // GROUP * width : -(-end // GROUP) * width]
        values = unpack(packed, width)[: end - start]
        exponents = values + base
        if offsets is not None and escapes is not None:
            blocks = offsets[start // BLOCK : -(-end // BLOCK)]
            escaped = (values == 2**width - 1).view(blocks.numel(), -1)
            places = escaped.cumsum(1, dtype=torch.int32)
            places = places.add_(blocks[:, None] - 1).clamp_(0, escapes.numel() - 1)
            picked = escapes.index_select(0, places.view(-1))
            exponents = torch.where(escaped.view(-1), picked, exponents)
        part = sign_mantissa[start:end]
        merged = exponents.to(torch.int16).bitwise_left_shift_(7)
        merged |= part & 0x7F
        # The sign as a number: -32768 has the top bit set and no other.
        bits[start:end].copy_(merged.bitwise_or_((part >> 7).to(torch.int16).mul_(-32768)))
