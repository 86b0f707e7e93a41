"""Eight codes of ``width`` bits in ``width`` bytes, and back, eight bytes at a time.

Eight codes, a byte each, are one 64-bit word. Closing gaps three times brings them together: first the second of each
two moves next to the first, then the second two of each four, then the second four. Unpacking takes the same steps
back.
"""

from __future__ import annotations

import torch

from xinfer_lab.residency.codec.format import GROUP

__all__ = ["pack", "unpack"]


def _steps(width: int) -> list[tuple[int, int]]:
    """(shift, mask) of the three steps of packing; a mask has the bits that hold codes after its step."""
    steps = []
    for level in range(3):
        lane, bits = 16 << level, width << (level + 1)
        mask = sum(((1 << bits) - 1) << start for start in range(0, 64, lane))
        steps.append(((8 - width) << level, _signed(mask)))
    return steps


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


def pack(codes: torch.Tensor, width: int) -> torch.Tensor:
    """``codes`` (uint8, 1-D, a multiple of 8 of them, each below 2^width) as uint8 [len / 8 * width]."""
    words = codes.view(torch.int64)
    for shift, mask in _steps(width):
        words = (words | (words >> shift)).bitwise_and_(mask)
    return words.view(torch.uint8).view(-1, GROUP)[:, :width].reshape(-1)


def unpack(packed: torch.Tensor, width: int) -> torch.Tensor:
    """The codes that `pack` made ``packed`` (uint8, 1-D) of: uint8 [len / width * 8]."""
    rows = torch.zeros(packed.numel() // width, GROUP, dtype=torch.uint8, device=packed.device)
    rows[:, :width] = packed.view(-1, width)
    words = rows.view(torch.int64).view(-1)
    ones = _signed(sum(((1 << width) - 1) << start for start in range(0, 64, 8)))
    steps = _steps(width)
    masks = [*(mask for _, mask in reversed(steps[:-1])), ones]
    for (shift, _), mask in zip(reversed(steps), masks, strict=True):
        words = (words | (words << shift)).bitwise_and_(mask)
    return words.view(torch.uint8)
