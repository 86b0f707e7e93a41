"""Lab 6: what the coded form of a tensor has to say, and what wrong ideas about it would make of one.

A form is judged by what it decodes to, by the format's rules and nothing else, and by its size. Several windows may
hold equally many weights, so an idea is recognised by a ``pattern``; its ``model`` is there for the ledger of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome, WrongModel, equal
from xinfer_lab.labs.lab6.judge.form import (
    ESCAPE,
    PARTS,
    WINDOW,
    BadForm,
    fewest_escapes,
    first_wrong,
    patterns,
    read_form,
    sums,
)

__all__ = ["ENCODE", "ENCODE_ESCAPES"]

Inputs = Mapping[str, Value]
Form = Mapping[str, Value]


def _encoding(expected: Value, got: Value, noun: str) -> Difference | None:
    if "base" in expected:
        # What a wrong idea would answer, held against an answer.
        return equal(expected, got, noun)
    bits = patterns(expected["bits"])
    try:
        decoded = read_form(got, len(bits))
    except BadForm as error:
        return error.difference
    wrong = first_wrong(bits, decoded, "The form does not decode to the weights that went in.")
    if wrong is not None:
        return wrong
    least = fewest_escapes(bits)
    if (escaped := len(got["escapes"])) > least:
        size = 12 + 8 * least / len(bits)
        return Difference(
            "",
            f"at most {size:.2f} bits a weight: {least:,} of {len(bits):,} weights escape from the best window",
            f"{12 + 8 * escaped / len(bits):.2f} bits: {escaped:,} escape from {got['base']} on",
            "It is exact, and larger than it has to be.",
            "Which 15 neighbouring exponents hold the most weights?",
        )
    return None


def _exponents(bits: Sequence[int]) -> list[int]:
    return [value >> 7 & 255 for value in bits]


def _best(exponents: Sequence[int], window: int = WINDOW) -> int:
    found = sums(exponents, window)
    return found.index(max(found))


def _made(
    *,
    base: Callable[[list[int]], int] = _best,
    of: Callable[[Any], Any] = lambda patterns: patterns,
    sign: Callable[[Any], Any] = lambda patterns: patterns >> 8 & 0x80 | patterns & 0x7F,
    code: Callable[[Any, int], Any] = lambda exponents, base: exponents - base,
    window: int = WINDOW,
    escapes: Callable[[Any, int], Any] = lambda outside, base: outside,
    unused: int = 0,
    pack: Callable[[Any, Any], list[Any]] = lambda first, second: [first | second << 4],
    drop: bool = False,
) -> Callable[[Inputs], Value]:
    """What an encoder gives that goes by all rules, or by another one where one is given. (All on arrays.)"""

    def model(inputs: Inputs) -> Value:
        bits = of(np.frombuffer(inputs["bits"], "<u2").astype(np.int64))
        exponents = bits >> 7 & 255
        start = base(exponents.tolist())
        outside = (exponents < start) | (exponents >= start + window)
        codes = np.where(outside, ESCAPE, code(exponents, start) & 15)
        if len(codes) % 2:
            codes = codes[:-1] if drop else np.append(codes, unused)
        return {
            "base": start,
            "count": len(bits),
            "sign_mantissa": _bytes(sign(bits)),
            "codes": _bytes(np.stack(pack(codes[::2], codes[1::2]), axis=1).reshape(-1)),
            "escapes": _bytes(escapes(exponents[outside], start)),
        }

    return model


def _clipped(inputs: Inputs) -> Value:
    form = _made()(inputs)
    exponents = np.frombuffer(inputs["bits"], "<u2").astype(np.int64) >> 7 & 255
    codes = np.clip(exponents - form["base"], 0, 14)
    codes = np.append(codes, 0) if len(codes) % 2 else codes
    return {**form, "codes": _bytes(codes[::2] | codes[1::2] << 4), "escapes": b""}


def _bytes(numbers: Any) -> bytes:
    return bytes((np.asarray(numbers, dtype=np.int64) & 255).astype(np.uint8).tobytes())


_Outcomes = Sequence[tuple[object, Outcome]]
_Test = Callable[[Sequence[int], Form], bool]


def _forms(outcomes: _Outcomes) -> list[tuple[tuple[int, ...], Form]]:
    """The patterns that went in and the form that came out, of each case with a form of the right kind."""
    found = []
    for case, outcome in outcomes:
        form = outcome.value
        of_its_kind = isinstance(form, dict) and set(form) == set(PARTS) and type(form["base"]) is int
        if of_its_kind and all(isinstance(form[name], bytes) for name in PARTS[2:]):
            found.append((patterns(case.inputs["bits"]), form))  # type: ignore[attr-defined]
    return found


def _every(test: _Test, right: _Test | None = None) -> Callable[[_Outcomes], bool]:
    """Whether each form passes ``test``, and not all of them ``right``, which is how it should be."""
    return lambda outcomes: (
        bool(forms := _forms(outcomes))
        and all(test(bits, form) for bits, form in forms)
        and (right is None or not all(right(bits, form) for bits, form in forms))
    )


def _codes(form: Form, high_first: bool = False) -> list[int]:
    return [c for pair in form["codes"] for c in ((pair >> 4, pair & 15) if high_first else (pair & 15, pair >> 4))]


def _in_window(form: Form, exponent: int) -> bool:
    return bool(0 <= exponent - form["base"] < WINDOW)


def _codes_are(high_first: bool) -> _Test:
    def test(bits: Sequence[int], form: Form) -> bool:
        wanted = [e - form["base"] if _in_window(form, e) else ESCAPE for e in _exponents(bits)]
        return _codes(form, high_first)[: len(bits)] == wanted

    return test


def _escapes_are(make: Callable[[list[int], int], list[int]]) -> _Test:
    def test(bits: Sequence[int], form: Form) -> bool:
        outside = [e for e in _exponents(bits) if not _in_window(form, e)]
        return list(form["escapes"]) == make(outside, form["base"])

    return test


def _same_escapes(bits: Sequence[int], form: Form) -> bool:
    return sorted(form["escapes"]) == sorted(e for e in _exponents(bits) if not _in_window(form, e))


def _shifted_codes(bits: Sequence[int], form: Form) -> bool:
    exponents, codes = _exponents(bits), _codes(form)
    return (
        len(form["codes"]) == (len(bits) + 1) // 2
        and codes[: len(bits)] != [e - form["base"] for e in exponents]
        and len({(code - e) & 15 for code, e in zip(codes, exponents, strict=False)}) == 1
    )


_RIGHT_ESCAPES = _escapes_are(lambda outside, base: outside)


def _as_small_as_can_be(bits: Sequence[int], form: Form) -> bool:
    return len(form["escapes"]) <= fewest_escapes(bits)


def _window(name: str, explanation: str, pick: Callable[[Sequence[int]], int]) -> WrongModel:
    pattern = _every(lambda bits, form: form["base"] == pick(_exponents(bits)), _as_small_as_can_be)
    return WrongModel(name, explanation, _made(base=pick), pattern, rule="best_window")


_PACKING = (
    WrongModel(
        "One code a byte",
        "A code has 4 bits: two of them share a byte, or the form is no smaller than the weights.",
        _made(pack=lambda first, second: [first, second]),
        _every(lambda bits, form: len(form["codes"]) == len(bits)),
        rule="two_a_byte",
    ),
    WrongModel(
        "The high half first",
        "The first of two codes goes into the low four bits of its byte.",
        _made(pack=lambda first, second: [first << 4 | second]),
        _every(_codes_are(True), _codes_are(False)),
        rule="low_first",
    ),
    WrongModel(
        "The last code of an odd number is dropped",
        "An odd number of codes has a last byte of its own, half of it unused.",
        _made(drop=True),
        _every(lambda bits, form: len(form["codes"]) == len(bits) // 2),
        rule="odd",
    ),
    WrongModel(
        "The unused half is not 0",
        "Where the number of weights is odd, bits 7 to 4 of the last byte of codes are 0.",
        _made(unused=15),
        rule="unused",
    ),
    WrongModel(
        "The sign is lost",
        "Bit 7 of sign_mantissa is the sign, bit 15 of the weight.",
        _made(sign=lambda pattern: pattern & 0x7F),
        _every(lambda bits, form: list(form["sign_mantissa"]) == [value & 0x7F for value in bits]),
        rule="sign",
    ),
    WrongModel(
        "The low byte of the weight",
        "Bit 7 of the weight is the exponent's lowest bit, not its sign: the sign is bit 15.",
        _made(sign=lambda pattern: pattern & 0xFF),
        _every(lambda bits, form: list(form["sign_mantissa"]) == [value & 0xFF for value in bits]),
        rule="sign",
    ),
    WrongModel(
        "The mantissa is lost",
        "Bits 6 to 0 of sign_mantissa are the mantissa.",
        _made(sign=lambda pattern: pattern >> 8 & 0x80),
        _every(lambda bits, form: list(form["sign_mantissa"]) == [value >> 8 & 0x80 for value in bits]),
        rule="mantissa",
    ),
    WrongModel(
        "Codes count from somewhere else than base",
        "A code is exponent - base, from 0 to 14.",
        _made(code=lambda exponents, base: exponents - base + 1),
        _every(_shifted_codes),
        rule="base",
    ),
    WrongModel(
        "Sixteen exponents in the window",
        "Code 15 says escape, so the window has 15 exponents: codes 0 to 14.",
        _made(base=lambda exponents: _best(exponents, 16), window=16),
        rule="fifteen",
    ),
    WrongModel(
        "NaN is tidied up",
        "Every pattern comes back as it was: exponent 255 with a mantissa is NaN, with any payload.",
        _made(of=lambda bits: np.where(bits & 0x7FFF > 0x7F80, 0x7FC0, bits)),
        rule="every_pattern",
    ),
    WrongModel(
        "Subnormals become zero",
        "Exponent 0 with a mantissa is a number, too; bits are copied, not computed with.",
        _made(of=lambda bits: np.where(bits & 0x7F80 == 0, bits & 0x8000, bits)),
        rule="every_pattern",
    ),
    _window(
        "The window begins at the smallest exponent",
        "One weight that is nearly zero would take the window away from all others: take the 15 neighbours that "
        "hold the most weights.",
        lambda exponents: min(241, min(exponents)),
    ),
    _window(
        "The window begins at the most frequent exponent",
        "Exponents are frequent on both sides of that one: sum up 15 neighbours for each place to begin.",
        lambda exponents: min(241, sums(exponents, 1).index(max(sums(exponents, 1)))),
    ),
    _window(
        "The window ends at the largest exponent",
        "An infinity would take the window away from all others: take the 15 neighbours that hold the most weights.",
        lambda exponents: max(0, max(exponents) - 14),
    ),
    WrongModel(
        "Everything escapes",
        "Then 20 bits a weight cross the link in place of 16: escapes are for what is rare.",
        _made(window=0),
        _every(lambda bits, form: len(form["escapes"]) == len(bits)),
        rule="best_window",
    ),
)

_ESCAPING = (
    WrongModel(
        "The nearest code in place of an escape",
        "What lies outside of the window has code 15, and its exponent among the escapes.",
        _made(
            code=lambda exponents, base: np.clip(exponents - base, 0, 14), window=256, escapes=lambda outside, base: []
        ),
        rule="escape",
    ),
    WrongModel(
        "Codes instead of exponents among the escapes",
        "An escape's byte is the exponent itself: it escapes because exponent - base fits no code.",
        _made(escapes=lambda outside, base: outside - base),
        _every(_escapes_are(lambda outside, base: [e - base & 255 for e in outside]), _RIGHT_ESCAPES),
        rule="itself",
    ),
    WrongModel(
        "Escapes in another order",
        "They lie in the order of the weights, or nobody knows which is whose.",
        _made(escapes=lambda outside, base: np.sort(outside)),
        _every(_same_escapes, _RIGHT_ESCAPES),
        rule="in_order",
    ),
)


def _encode_judge(passed: str, ideas: tuple[WrongModel, ...]) -> Judge:
    return Judge(
        truth=dict,
        passed=passed,
        noun="dict",
        call=lambda case: f"encode(...): {case.label}",
        compare=_encoding,
        wrong=ideas,
        besides=("types", "keeps_inputs"),
    )


ENCODE = _encode_judge("The form decodes to the very same bits.", _PACKING)
ENCODE_ESCAPES = _encode_judge("Exact for every pattern, within the bound.", (*_PACKING, *_ESCAPING))
