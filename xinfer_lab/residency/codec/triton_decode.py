"""The Triton kernels behind ``decode_exponents``: one program a block of 4096 weights."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from xinfer_lab.residency.codec.format import BLOCK, GROUP

__all__ = ["decode_into_triton"]

_WARPS = 4
_SMALL = 4 * BLOCK
"""Weights below which one launch of the slower kernel is faster than one for the whole blocks and one for the rest."""


@triton.jit  # type: ignore[untyped-decorator]
def _permute(instruction: tl.constexpr, lower, upper):  # type: ignore[no-untyped-def]
    return tl.inline_asm_elementwise(instruction, "=r,r,r", [lower, upper], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit(do_not_specialize=["escape_count", "base"])  # type: ignore[untyped-decorator]
def _decode_whole(  # type: ignore[no-untyped-def]
    out, sign_mantissa, codes, offsets, escapes, escape_count, base,
    WIDTH: tl.constexpr, ESCAPES: tl.constexpr, PERMUTE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Whole blocks, four weights at a time: a byte of a 32-bit word is one weight's, so that each operation does four.

    What takes the time is arithmetic, not memory, so this is written for few operations a weight. ``out`` is seen as
    int64, ``sign_mantissa`` as int32, codes of 4 bits as int16; ``WIDTH`` is 3 or 4.
    """
    block = tl.program_id(0).to(tl.int64)
    words = tl.arange(0, BLOCK // 8)[:, None] * 2 + tl.arange(0, 2)[None, :]
    # All that can be asked for now is: what the branch below waits for must not hold it up.
    rest = tl.load(sign_mantissa + block * (BLOCK // 4) + words)
    if ESCAPES:
        escapes_before = tl.load(offsets + block)
    if WIDTH == 4:
        packed = tl.load(codes + block * (BLOCK // 4) + words).to(tl.int32) & 0xFFFF
    else:
        # Twelve bits a word: they begin in the middle of every other byte.
        place = codes + block * (BLOCK // 8 * 3) + (words * 3 >> 1)
        packed = tl.load(place).to(tl.int32) | (tl.load(place + 1).to(tl.int32) << 8)
        packed = (packed >> ((words & 1) * 4)) & 0xFFF
    pairs = (packed | (packed << (2 * (8 - WIDTH)))) & (((1 << (2 * WIDTH)) - 1) * 0x00010001)
    code = (pairs | (pairs << (8 - WIDTH))) & (((1 << WIDTH) - 1) * 0x01010101)
    # No byte overflows: base + 2^width - 1 is at most 255.
    exponent = code + base * 0x01010101
    if ESCAPES:
        # A 1 in the byte of each escape: all bits of its code are set.
        escaped = code & (code >> 1) & (code >> 2) & 0x01010101
        if WIDTH == 4:
            escaped = escaped & (code >> 3)
        count = (escaped * 0x01010101) >> 24
        in_group = tl.sum(count, axis=1)
        most = tl.max(tl.max(count, axis=1), axis=0)
        if most > 0:
            before = tl.cumsum(in_group, axis=0) - in_group
            first_escape = escapes_before + before[:, None] + tl.cumsum(count, axis=1) - count
            for turn in range(0, most):
                at = tl.minimum(tl.maximum(first_escape + turn, 0), escape_count - 1)
                taken = tl.load(escapes + at, mask=turn < count, other=0).to(tl.int32)
                lowest = escaped & (0 - escaped)
                exponent = exponent ^ (lowest * (taken ^ (base + (1 << WIDTH) - 1)))
                escaped = escaped ^ lowest
    # The upper byte of each weight, sign and seven bits of the exponent; and the lower, its last bit and the mantissa.
    upper = (rest & -0x7F7F7F80) | ((exponent >> 1) & 0x7F7F7F7F)
    lower = (rest & 0x7F7F7F7F) | ((exponent & 0x01010101) << 7)
    # Bytes in turn, lower and upper: one instruction of NVIDIA's GPUs for two weights.
    if PERMUTE:
        first = _permute("prmt.b32 $0, $1, $2, 0x5140;", lower, upper)
        second = _permute("prmt.b32 $0, $1, $2, 0x7362;", lower, upper)
    else:
        first = (lower & 0xFF) | ((upper & 0xFF) << 8) | ((lower & 0xFF00) << 8) | ((upper & 0xFF00) << 16)
        lower, upper = lower >> 16, upper >> 16
        second = (lower & 0xFF) | ((upper & 0xFF) << 8) | ((lower & 0xFF00) << 8) | ((upper & 0xFF00) << 16)
    bits = (first.to(tl.int64) & 0xFFFFFFFF) | (second.to(tl.int64) << 32)
    tl.store(out + block * (BLOCK // 4) + words, bits)


@triton.jit(do_not_specialize=["first", "count", "escape_count", "base"])  # type: ignore[untyped-decorator]
def _decode_any(  # type: ignore[no-untyped-def]
    out, sign_mantissa, codes, offsets, escapes, first, count, escape_count, base,
    WIDTH: tl.constexpr, ESCAPES: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Blocks from ``first`` on, the last of which may be short; any width, at any address; weight by weight."""
    block = tl.program_id(0) + first
    start = block.to(tl.int64) * BLOCK
    groups = tl.arange(0, BLOCK // GROUP)[:, None]
    lanes = tl.arange(0, GROUP)[None, :]
    inside = groups * GROUP + lanes
    left = count - start
    valid = inside < left
    packed = tl.zeros((BLOCK // GROUP, 1), tl.int32)
    for byte in tl.static_range(WIDTH):
        place = codes + start // GROUP * WIDTH + groups * WIDTH + byte
        packed |= tl.load(place, mask=groups * GROUP < left, other=0).to(tl.int32) << (8 * byte)
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
        taken = tl.load(escapes + place, mask=escaped & valid, other=0)
        exponent = tl.where(escaped, taken.to(tl.int32), exponent)
    rest = tl.load(sign_mantissa + start + inside, mask=valid, other=0).to(tl.int32)
    bits = ((rest & 0x80) << 8) | (exponent << 7) | (rest & 0x7F)
    tl.store(out + start + inside, bits.to(tl.int16), mask=valid)


def _has_prmt(out: torch.Tensor) -> bool:
    return out.is_cuda and torch.version.hip is None


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
    count = out.numel()
    bits = out.view(torch.int16)
    some = offsets is not None and escapes is not None
    known = escapes.numel() if escapes is not None else 0
    apart = (offsets, escapes) if some else (bits, bits)
    wide = width in (3, 4) and not (out.data_ptr() % 8 or sign_mantissa.data_ptr() % 4 or codes.data_ptr() % 2)
    # A small tensor is not worth two launches.
    whole = count // BLOCK if wide and count >= _SMALL else 0
    if whole:
        size = whole * BLOCK
        words = codes[: size // GROUP * width]
        _decode_whole[(whole,)](
            bits[:size].view(torch.int64), sign_mantissa[:size].view(torch.int32),
            words.view(torch.int16) if width == 4 else words, *apart, known, base,
            WIDTH=width, ESCAPES=some, PERMUTE=_has_prmt(out), BLOCK=BLOCK, num_warps=_WARPS,
        )  # fmt: skip
    if (blocks := -(-count // BLOCK) - whole) > 0:
        _decode_any[(blocks,)](
            bits, sign_mantissa, codes, *apart, whole, count, known, base,
            WIDTH=width, ESCAPES=some, BLOCK=BLOCK, GROUP=GROUP, num_warps=_WARPS,
        )  # fmt: skip
