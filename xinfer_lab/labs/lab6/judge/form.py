"""Lab 6: the coded form of a tensor by the format's rules: what it stands for, and how few escapes there can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xinfer_lab.grading.values import Opaque, Value, shown
from xinfer_lab.grading.verify_values import Difference

__all__ = ["ESCAPE", "PARTS", "WINDOW", "BadForm", "fewest_escapes", "first_wrong", "patterns", "read_form", "sums"]

WINDOW, ESCAPE = 15, 15
PARTS = ("base", "count", "sign_mantissa", "codes", "escapes")


class BadForm(ValueError):
    """A coded form that breaks a rule of the format: where, what was wanted, what is there, a hint."""

    def __init__(self, path: str, wanted: str, got: str, headline: str) -> None:
        super().__init__(headline)
        self.difference = Difference(path, wanted, got, headline)


def patterns(data: bytes) -> tuple[int, ...]:
    """The 16-bit patterns in ``data``, little-endian."""
    return tuple(np.frombuffer(data, "<u2").tolist())


def sums(exponents: Sequence[int], window: int = WINDOW) -> list[int]:
    """How many of ``exponents`` lie in the window that begins at 0, at 1, and so on."""
    counts = np.bincount(np.asarray(exponents, dtype=np.int64), minlength=256)
    found: list[int] = np.convolve(counts, np.ones(window, dtype=np.int64), "valid").tolist()
    return found


def fewest_escapes(bits: Sequence[int]) -> int:
    """Weights outside of the best window of 15 neighbouring exponents."""
    return len(bits) - max(sums([value >> 7 & 255 for value in bits]))


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
    pairs = np.frombuffer(form["codes"], np.uint8)
    codes = np.stack([pairs & 15, pairs >> 4], axis=1).reshape(-1)[:count].astype(np.int64)
    escaped = int((codes == ESCAPE).sum())
    if len(form["escapes"]) != escaped:
        headline = "There has to be one byte for each code that says escape."
        raise BadForm("['escapes']", f"{escaped:,} bytes", f"{len(form['escapes']):,} bytes", headline)
    exponents = form["base"] + codes
    exponents[codes == ESCAPE] = np.frombuffer(form["escapes"], np.uint8)
    signs = np.frombuffer(form["sign_mantissa"], np.uint8).astype(np.int64)
    return tuple(((signs & 0x80) << 8 | exponents << 7 | signs & 0x7F).tolist())


def words(pattern: int) -> str:
    """A pattern as its three fields."""
    return f"0x{pattern:04X} (sign {pattern >> 15}, exponent {pattern >> 7 & 255}, mantissa {pattern & 127})"


def first_wrong(expected: Sequence[int], got: Sequence[int], headline: str) -> Difference | None:
    """The first pattern that differs."""
    for place, (right, given) in enumerate(zip(expected, got, strict=True)):
        if right != given:
            return Difference(f"weight {place}", words(right), words(given), headline)
    return None
