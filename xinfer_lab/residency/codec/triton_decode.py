"""The Triton kernel behind ``decode_exponents``: one program a block of 4096 weights, eight weights a thread at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from xinfer_lab.residency.codec.format import BLOCK, GROUP

__all__ = ["decode_into_triton"]

_WARPS = 4


@triton.jit(do_not_specialize=["first", "count", "escape_count", "base"])  # type: ignore[untyped-decorator]
def _decode_blocks(  # type: ignore[no-untyped-def]
    out, sign_mantissa, codes, offsets, escapes, first, count, escape_count, base,
    WIDTH: tl.constexpr, WORDS: tl.constexpr, ESCAPES: tl.constexpr, MASKED: tl.constexpr,
    BLOCK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0) + first
    start = block.to(tl.int64) * BLOCK
    groups = tl.arange(0, BLOCK // GROUP)[:, None]
    lanes = tl.arange(0, GROUP)[None, :]
    inside = groups * GROUP + lanes
    left = count - start
    valid = inside < left
    # Eight codes of a group, in the low WIDTH * 8 bits of a word.
    if WORDS:
        words = codes + start // GROUP
        packed = tl.load(words + groups, mask=groups * GROUP < left, other=0) if MASKED else tl.load(words + groups)
    else:
        first_byte = codes + start // GROUP * WIDTH
        packed = tl.zeros((BLOCK // GROUP, 1), tl.int32)
        for byte in tl.static_range(WIDTH):
            place = first_byte + groups * WIDTH + byte
            part = tl.load(place, mask=groups * GROUP < left, other=0) if MASKED else tl.load(place)
            packed |= part.to(tl.int32) << (8 * byte)
    code = (packed >> (lanes * WIDTH)) & ((1 << WIDTH) - 1)
    exponent = code + base
    if ESCAPES:
        escaped = code == (1 << WIDTH) - 1
        ones = escaped.to(tl.int32)
        # Which escape of the block it is: those in earlier groups, and those before it in its own.
        in_group = tl.sum(ones, axis=1)
        before = tl.cumsum(in_group, axis=0) - in_group
        place = tl.load(offsets + block) - 1 + before[:, None] + tl.cumsum(ones, axis=1)
        place = tl.minimum(tl.maximum(place, 0), escape_count - 1)
        taken = tl.load(escapes + place, mask=escaped & valid if MASKED else escaped, other=0)
        exponent = tl.where(escaped, taken.to(tl.int32), exponent)
    if MASKED:
        rest = tl.load(sign_mantissa + start + inside, mask=valid, other=0).to(tl.int32)
    else:
        rest = tl.load(sign_mantissa + start + inside).to(tl.int32)
    bits = (((rest & 0x80) << 8) | ((exponent & 0xFF) << 7) | (rest & 0x7F)).to(tl.int16)
    if MASKED:
        tl.store(out + start + inside, bits, mask=valid)
    else:
        tl.store(out + start + inside, bits)


def decode_into_triton(
    out: torch.Tensor,
    sign_mantissa: torch.Tensor,
    codes: torch.Tensor,
    offsets: torch.Tensor | None,
    escapes: torch.Tensor | None,
    width: int,
    base: int,
) -> None:
    """The same bytes as `xinfer_lab.residency.codec.decode.decode_into`, on the current stream of a CUDA device."""
    bits = out.view(torch.int16)
    count = bits.numel()
    words = width == 4 and codes.data_ptr() % 4 == 0
    packed = codes.view(torch.int32) if words else codes
    some = offsets is not None and escapes is not None
    whole = count // BLOCK
    # The blocks that are full need no masks, and without masks loads and stores are as wide as they can be.
    for first, blocks, masked in ((0, whole, False), (whole, 1, True)):
        if blocks and not (masked and whole * BLOCK == count):
            _decode_blocks[(blocks,)](
                bits, sign_mantissa, packed, offsets if some else bits, escapes if some else bits, first, count,
                escapes.numel() if escapes is not None else 0, base, WIDTH=width, WORDS=words, ESCAPES=some,
                MASKED=masked, BLOCK=BLOCK, GROUP=GROUP, num_warps=_WARPS,
            )  # fmt: skip
