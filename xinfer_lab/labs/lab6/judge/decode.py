"""Lab 6: what a coded form decodes to, and what wrong ideas about it would make of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, WrongModel
from xinfer_lab.labs.lab6.judge.form import ESCAPE, first_wrong, patterns, read_form

__all__ = ["DECODE", "DECODE_ESCAPES"]

Inputs = Mapping[str, Value]


def _decoding(expected: Value, got: Value, noun: str) -> Difference | None:
    bits = patterns(expected)
    wanted = f"a 1-D tensor of {len(bits):,} whole numbers from 0 to 65,535"
    match got:
        case {"least": least, "most": most}:
            return Difference(
                "", wanted, f"numbers from {shown(least)} to {shown(most)}", "Some of these are no 16-bit patterns."
            )
        case {"shape": shape, "dtype": dtype}:
            return Difference("", wanted, f"a tensor of shape {shown(shape)}, {dtype}", "The tensor has another form.")
        case {"other": other}:
            return Difference("", wanted, shown(other, 120), "This is no tensor of patterns.")
        case bytes():
            given = patterns(got)
        case _:
            return Difference("", wanted, shown(got, 120), "This is no tensor of patterns.")
    if len(given) != len(bits):
        return Difference("", wanted, f"{len(given):,} of them", "This is not the number of weights.")
    return first_wrong(bits, given, "A weight comes back with other bits.")


def _packed(bits: Sequence[int]) -> bytes:
    return np.asarray(bits, dtype="<u2").tobytes()


def _reads(change: Callable[[int, int, Inputs], int]) -> Callable[[Inputs], Value]:
    """What a decoder would give that ``change(pattern, code, coded)`` describes."""

    def model(inputs: Inputs) -> Value:
        coded = inputs["coded"]
        bits = read_form(coded, coded["count"])
        codes = [code for pair in coded["codes"] for code in (pair & 15, pair >> 4)]
        changed = [change(pattern, code, coded) & 0xFFFF for pattern, code in zip(bits, codes, strict=False)]
        return _packed(changed)

    return model


def _swapped(inputs: Inputs) -> Value:
    coded = dict(inputs["coded"])
    coded["codes"] = bytes(pair >> 4 | (pair & 15) << 4 for pair in coded["codes"])
    return _form_with(coded)


def _form_with(coded: Mapping[str, Value]) -> Value:
    codes = [code for pair in coded["codes"] for code in (pair & 15, pair >> 4)][: coded["count"]]
    rest = iter(coded["escapes"])
    exponents = [next(rest, 0) if code == ESCAPE else coded["base"] + code for code in codes]
    signs = coded["sign_mantissa"]
    return _packed([((s & 0x80) << 8 | e << 7 | s & 0x7F) & 0xFFFF for s, e in zip(signs, exponents, strict=True)])


def _escapes_backwards(inputs: Inputs) -> Value:
    return _form_with({**inputs["coded"], "escapes": inputs["coded"]["escapes"][::-1]})


def _first_escape(inputs: Inputs) -> Value:
    escapes = inputs["coded"]["escapes"]
    return _form_with({**inputs["coded"], "escapes": escapes[:1] * len(escapes)})


def _by_place(inputs: Inputs) -> Value:
    coded = inputs["coded"]
    codes = [code for pair in coded["codes"] for code in (pair & 15, pair >> 4)][: coded["count"]]
    escapes = coded["escapes"] or b"\0"
    taken = bytes(escapes[min(place, len(escapes) - 1)] for place, code in enumerate(codes) if code == ESCAPE)
    return _form_with({**coded, "escapes": taken})


_IDEAS = (
    WrongModel(
        "The high half first",
        "The first of two codes lies in the low four bits of its byte.",
        _swapped,
        rule="low_first",
    ),
    WrongModel(
        "The base is forgotten",
        "A code counts from the window's first exponent: exponent = base + code.",
        _reads(lambda p, c, f: p if c == ESCAPE else p - (f["base"] << 7)),
        rule="base",
    ),
    WrongModel(
        "The sign is lost",
        "Bit 7 of sign_mantissa is the sign: it goes to bit 15.",
        _reads(lambda p, c, f: p & 0x7FFF),
        rule="sign",
    ),
    WrongModel(
        "The sign stays where it was",
        "Bit 7 of a pattern is the exponent's lowest bit; the sign belongs to bit 15.",
        _reads(lambda p, c, f: (p & 0x7FFF) | (p >> 15 << 7)),
        rule="sign",
    ),
    WrongModel(
        "The mantissa is lost",
        "The low 7 bits of sign_mantissa are the mantissa.",
        _reads(lambda p, c, f: p & 0xFF80),
        rule="mantissa",
    ),
    WrongModel(
        "The exponent is one place too high",
        "A bfloat16 has 7 mantissa bits: the exponent begins at bit 7.",
        _reads(lambda p, c, f: (p & 0x8000) | ((p >> 7 & 255) << 8 & 0x7FFF) | (p & 0x7F)),
        rule="exponent",
    ),
)

_ESCAPE_IDEAS = (
    WrongModel(
        "Escapes are not read",
        "Code 15 is no exponent: the next byte of escapes is.",
        _reads(lambda p, c, f: (p & 0x807F) | ((f["base"] + 15) & 255) << 7 if c == ESCAPE else p),
        rule="escape",
    ),
    WrongModel(
        "The first escape, again and again", "Escapes are used up one after the other.", _first_escape, rule="in_order"
    ),
    WrongModel(
        "An escape by its weight's number",
        "Escapes are stored without gaps: the k-th code 15 has the k-th byte, whatever weight it belongs to.",
        _by_place,
        rule="no_gaps",
    ),
    WrongModel("Escapes from the end", "They lie in the order of the weights.", _escapes_backwards, rule="in_order"),
    WrongModel(
        "NaN and infinities are replaced",
        "Every pattern comes back as it was: exponent 255 is an exponent like all others.",
        _reads(lambda p, c, f: 0 if p >> 7 & 255 == 255 else p),
        rule="every_pattern",
    ),
    WrongModel(
        "Subnormals become zero",
        "Exponent 0 with a mantissa is a number, too; bits are copied, not computed with.",
        _reads(lambda p, c, f: p & 0x8000 if p >> 7 & 255 == 0 else p),
        rule="every_pattern",
    ),
    WrongModel(
        "The base is added to escapes",
        "An escape's byte is the exponent itself.",
        _reads(lambda p, c, f: (p & 0x807F) | ((p >> 7 & 255) + f["base"] & 255) << 7 if c == ESCAPE else p),
        rule="itself",
    ),
)


def _decode_truth(inputs: Inputs) -> Value:
    return _packed(read_form(inputs["coded"], inputs["coded"]["count"]))


def _decode_judge(passed: str, ideas: tuple[WrongModel, ...]) -> Judge:
    return Judge(
        truth=_decode_truth,
        passed=passed,
        noun="tensor of patterns",
        call=lambda case: f"decode(...): {case.label}",
        compare=_decoding,
        wrong=ideas,
        besides=("tensor", "count", "keeps_inputs"),
    )


DECODE = _decode_judge("Every bit comes back.", _IDEAS)
DECODE_ESCAPES = _decode_judge("Every bit of all 65,536 patterns comes back.", (*_ESCAPE_IDEAS, *_IDEAS))
