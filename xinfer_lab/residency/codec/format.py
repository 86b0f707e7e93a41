"""The coded form of a bfloat16 tensor: signs and mantissas as they are, exponents as short codes, the rare ones apart.

A bfloat16 number is 1 sign bit, 8 exponent bits, 7 mantissa bits. In trained weights the exponents carry about 2.5 bits
of information. A code of ``width`` bits stands for one of 2^width - 1 neighbouring exponents, the window from ``base``
on; the last code says "escape", and the exponents of escapes follow as bytes, in the order of the weights. The exponent
of infinities and NaN, 255, is never in the window: the code that means "escape" would stand for it. Sections:

    sign_mantissa   uint8 [n]             sign bit and mantissa of each weight
    codes           uint8 [ceil(n/8) w]   eight codes in ``width`` bytes, the first in the lowest bits, little-endian
    offsets         int32 [ceil(n/4096)]  escapes before each block of 4096 weights: a block can be decoded on its own
    escapes         uint8 [e]             exponents of the escapes

The last two are left out where nothing escapes. Bits a weight: 8 + width + 32/4096 + 8 e/n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "ALIGNMENT",
    "BLOCK",
    "CODECS",
    "DECODE_CHUNK",
    "GROUP",
    "MAX_COUNT",
    "Coding",
    "EncodedLayer",
    "EncodedTensor",
    "Section",
    "aligned",
    "decode_workspace",
    "encoded_name",
]

CODECS: Mapping[str, int] = {"4bit": 4, "3bit": 3}
"""Bits of a code, by the codec's name."""

BLOCK = 4096
"""Weights that share an entry of ``offsets``."""

GROUP = 8
"""Codes that are packed together: they fill whole bytes, whatever their width."""

MAX_COUNT = 2**31 - BLOCK
"""Weights of a tensor: offsets are int32."""

DECODE_CHUNK = 256 * BLOCK
"""Weights that torch operations decode at a time, so that their workspace stays small. Triton needs none."""

ALIGNMENT = 256
"""Bytes: where a tensor begins inside a layer, and of which a layer's size is a multiple."""

_SECTION_ALIGNMENT = 16
"""Bytes: the widest load of a GPU's thread."""


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """The next multiple of ``alignment`` from ``size`` on."""
    return -(-size // alignment) * alignment


def decode_workspace(count: int) -> int:
    """Bytes that decoding ``count`` weights with torch operations takes at most, beside its operands."""
    return 20 * aligned(min(count, DECODE_CHUNK), GROUP) + 4096


def encoded_name(layer: int) -> str:
    """The name under which a device's sources hold the coded form of a layer, all its tensors together."""
    return f"encoded.layers.{layer}"


@dataclass(frozen=True, slots=True)
class Section:
    """``nbytes`` bytes from ``offset`` on, counted from the start of the tensor's coded form."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Coding:
    """How ``count`` weights are coded: ``width`` bits a code, a window from ``base`` on, ``escapes`` outside of it."""

    width: int
    base: int
    count: int
    escapes: int

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("width", self.width, 1, 4),
            ("base", self.base, 0, 255 - self.window),
            ("count", self.count, 1, MAX_COUNT),
            ("escapes", self.escapes, 0, self.count),
        ):
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"{name} of a coding must be a whole number from {low} to {high}, not {value!r}")

    @property
    def window(self) -> int:
        """How many exponents have a code; also the code that means "escape"."""
        return 2**self.width - 1 if type(self.width) is int and 1 <= self.width <= 4 else 1

    @property
    def blocks(self) -> int:
        """Blocks of 4096 weights; the last one may be shorter."""
        return -(-self.count // BLOCK)

    @property
    def sections(self) -> dict[str, Section]:
        """Where each section lies, by name; each begins at a multiple of 16 bytes."""
        sizes = {"sign_mantissa": self.count, "codes": -(-self.count // GROUP) * self.width}
        if self.escapes:
            sizes |= {"offsets": 4 * self.blocks, "escapes": self.escapes}
        found, offset = {}, 0
        for name, size in sizes.items():
            found[name] = Section(offset, size)
            offset += aligned(size, _SECTION_ALIGNMENT)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all sections and the padding between them."""
        last = list(self.sections.values())[-1]
        return last.offset + last.nbytes


@dataclass(frozen=True, slots=True)
class EncodedTensor:
    """A tensor in an encoded layer: ``name`` relative to the layer, ``nbytes`` bytes at ``offset``, ``count`` weights.

    ``coding`` is None for one that is kept as it was, since coding would not have made it smaller. ``checksum`` is the
    CRC-32 of the encoded bytes, ``source_checksum`` that of the weights.
    """

    name: str
    offset: int
    nbytes: int
    count: int
    coding: Coding | None
    checksum: int = 0
    source_checksum: int = 0


@dataclass(frozen=True, slots=True)
class EncodedLayer:
    """A decoder layer's tensors in their coded form, one after the other, each at a multiple of 256 bytes."""

    tensors: tuple[EncodedTensor, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the layer, padding between and after its tensors included; a multiple of 256."""
        return aligned(max(tensor.offset + tensor.nbytes for tensor in self.tensors))

    @property
    def count(self) -> int:
        """Weights of the layer."""
        return sum(tensor.count for tensor in self.tensors)
