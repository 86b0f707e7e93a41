"""Lab 6: the coded form of a tensor by the format's rules: what it stands for, and how few escapes there can be."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence

from xinfer_lab.grading.values import Opaque, Value, shown
from xinfer_lab.grading.verify_values import Difference

__all__ = ["ESCAPE", "PARTS", "WINDOW", "BadForm", "fewest_escapes", "first_wrong", "patterns", "read_form"]

WINDOW, ESCAPE = 15, 15
PARTS = ("base", "count", "sign_mantissa", "codes", "escapes")


class BadForm(ValueError):
    """A coded form that breaks a rule of the format: where, what was wanted, what is there, a hint."""

    def __init__(self, path: str, wanted: str, got: str, headline: str) -> None:
        super().__init__(headline)
        self.difference = Difference(path, wanted, got, headline)


def patterns(data: bytes) -> tuple[int, ...]:
    """The 16-bit patterns in ``data``, little-endian."""
    return struct.unpack(f"<{len(data) // 2}H", data)


def fewest_escapes(bits: Sequence[int]) -> int:
    """Weights outside of the best window of 15 neighbouring exponents."""
    counts = Counter(value >> 7 & 255 for value in bits)
    return len(bits) - max(sum(counts[base + place] for place in range(WINDOW)) for base in range(242))


def read_form(form: Value, count: int) -> tuple[int, ...]:
    """The patterns that ``form`` stands for, by the rules. Raises `BadForm`."""
    if not isinstance(form, dict) or set(form) != set(PARTS):
        raise BadForm("", "a dict with the keys " + ", ".join(PARTS), shown(form, 120), "The form is another one.")
    for name in ("base", "count"):
        if type(form[name]) is not int:
            raise BadForm(f"[{name!r}]", "a whole number", shown(form[name], 120), f"{name} is no int.")
    for name in ("sign_mantissa", "codes", "escapes"):
        if not isinstance(form[name], bytes):
            hint = f"{name} is no bytes. bytes(tensor.tolist()) makes them of a tensor of small numbers."
            given = form[name].type if isinstance(form[name], Opaque) else shown(form[name], 80)
            raise BadForm(f"[{name!r}]", "bytes", given, hint)
    if not 0 <= form["base"] <= 256 - WINDOW:
        raise BadForm("['base']", "0 to 241", shown(form["base"]), "The window does not lie among the exponents.")
    if form["count"] != count:
        raise BadForm("['count']", shown(count), shown(form["count"]), "This is not the number of weights.")
    sizes = {"sign_mantissa": count, "codes": (count + 1) // 2}
    for name, size in sizes.items():
        if len(form[name]) != size:
            headline = f"{name} has another length than the rules give it."
            raise BadForm(f"[{name!r}]", f"{size:,} bytes", f"{len(form[name]):,} bytes", headline)
    if count % 2 and form["codes"][-1] >> 4:
        headline = "The unused half of the last byte of codes is not 0."
        raise BadForm("['codes']", "0 in its bits 7 to 4", shown(form["codes"][-1] >> 4), headline)
    codes = [code for pair in form["codes"] for code in (pair & 15, pair >> 4)][:count]
    escaped = codes.count(ESCAPE)
    if len(form["escapes"]) != escaped:
        headline = "There has to be one byte for each code that says escape."
        raise BadForm("['escapes']", f"{escaped:,} bytes", f"{len(form['escapes']):,} bytes", headline)
    rest = iter(form["escapes"])
    exponents = [next(rest) if code == ESCAPE else form["base"] + code for code in codes]
    return tuple(
        (sign & 0x80) << 8 | exponent << 7 | sign & 0x7F
        for sign, exponent in zip(form["sign_mantissa"], exponents, strict=True)
    )


def words(pattern: int) -> str:
    """A pattern as its three fields."""
    return f"0x{pattern:04X} (sign {pattern >> 15}, exponent {pattern >> 7 & 255}, mantissa {pattern & 127})"


def first_wrong(expected: Sequence[int], got: Sequence[int], headline: str) -> Difference | None:
    """The first pattern that differs."""
    for place, (right, given) in enumerate(zip(expected, got, strict=True)):
        if right != given:
            return Difference(f"weight {place}", words(right), words(given), headline)
    return None
