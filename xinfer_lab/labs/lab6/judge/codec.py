"""Lab 6: what the coded form of a tensor has to say, and what wrong ideas about it would make of one.

A form is judged by what it decodes to, by the format's rules and nothing else, and by its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome, WrongModel
from xinfer_lab.labs.lab6.judge.form import (
    ESCAPE,
    PARTS,
    WINDOW,
    BadForm,
    fewest_escapes,
    first_wrong,
    patterns,
    read_form,
)

__all__ = ["DECODE", "DECODE_ESCAPES", "ENCODE", "ENCODE_ESCAPES"]

Inputs = Mapping[str, Value]


def _encoding(expected: Value, got: Value, noun: str) -> Difference | None:
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


def _decoding(expected: Value, got: Value, noun: str) -> Difference | None:
    bits = expected["bits"]
    wanted = f"a 1-D tensor of {len(bits):,} whole numbers from 0 to 65,535"
    match got:
        case {"least": least, "most": most}:
            return Difference(
                "", wanted, f"numbers from {shown(least)} to {shown(most)}", "Some of these are no 16-bit patterns."
            )
        case {"shape": shape, "dtype": dtype}:
            return Difference("", wanted, f"a tensor of shape {shown(shape)}, {dtype}", "The tensor has another form.")
        case bytes():
            given = patterns(got)
        case _:
            return Difference("", wanted, shown(got, 120), "This is no tensor of patterns.")
    if len(given) != len(bits):
        return Difference("", wanted, f"{len(given):,} of them", "This is not the number of weights.")
    return first_wrong(bits, given, "A weight comes back with other bits.")


def _where(name: str) -> Callable[[object], str]:
    return lambda case: f"{name}(...): {case.label}"  # type: ignore[attr-defined]


def _reads(change: Callable[[int, int, Inputs], int]) -> Callable[[Inputs], Value]:
    """What a decoder would give that ``change(pattern, code, coded)`` describes."""

    def model(inputs: Inputs) -> Value:
        coded = inputs["coded"]
        bits = read_form(coded, coded["count"])
        codes = [code for pair in coded["codes"] for code in (pair & 15, pair >> 4)]
        changed = [change(pattern, code, coded) & 0xFFFF for pattern, code in zip(bits, codes, strict=False)]
        return {"bits": tuple(changed)}

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
    return {"bits": tuple((s & 0x80) << 8 | e << 7 | s & 0x7F for s, e in zip(signs, exponents, strict=True))}


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
    WrongModel("The high half first", "The first of two codes lies in the low four bits of its byte.", _swapped),
    WrongModel(
        "The base is forgotten",
        "A code counts from the window's first exponent: exponent = base + code.",
        _reads(lambda p, c, f: p if c == ESCAPE else p - (f["base"] << 7)),
    ),
    WrongModel(
        "The sign is lost", "Bit 7 of sign_mantissa is the sign: it goes to bit 15.", _reads(lambda p, c, f: p & 0x7FFF)
    ),
    WrongModel(
        "The sign stays where it was",
        "Bit 7 of a pattern is the exponent's lowest bit; the sign belongs to bit 15.",
        _reads(lambda p, c, f: (p & 0x7FFF) | (p >> 15 << 7)),
    ),
    WrongModel(
        "The mantissa is lost", "The low 7 bits of sign_mantissa are the mantissa.", _reads(lambda p, c, f: p & 0xFF80)
    ),
    WrongModel(
        "The exponent is one place too high",
        "A bfloat16 has 7 mantissa bits: the exponent begins at bit 7.",
        _reads(lambda p, c, f: (p & 0x8000) | ((p >> 7 & 255) << 8 & 0x7FFF) | (p & 0x7F)),
    ),
)

_ESCAPE_IDEAS = (
    WrongModel(
        "Escapes are not read",
        "Code 15 is no exponent: the next byte of escapes is.",
        _reads(lambda p, c, f: (p & 0x807F) | ((f["base"] + 15) & 255) << 7 if c == ESCAPE else p),
    ),
    WrongModel("The first escape, again and again", "Escapes are used up one after the other.", _first_escape),
    WrongModel(
        "An escape by its weight's number",
        "Escapes are stored without gaps: the k-th code 15 has the k-th byte, whatever weight it belongs to.",
        _by_place,
    ),
    WrongModel("Escapes from the end", "They lie in the order of the weights.", _escapes_backwards),
    WrongModel(
        "NaN and infinities are replaced",
        "Every pattern comes back as it was: exponent 255 is an exponent like all others.",
        _reads(lambda p, c, f: 0 if p >> 7 & 255 == 255 else p),
    ),
    WrongModel(
        "Subnormals become zero",
        "Exponent 0 with a mantissa is a number, too; bits are copied, not computed with.",
        _reads(lambda p, c, f: p & 0x8000 if p >> 7 & 255 == 0 else p),
    ),
    WrongModel(
        "The base is added to escapes",
        "An escape's byte is the exponent itself.",
        _reads(lambda p, c, f: (p & 0x807F) | ((p >> 7 & 255) + f["base"] & 255) << 7 if c == ESCAPE else p),
    ),
)


def _decode_truth(inputs: Inputs) -> Value:
    return {"bits": read_form(inputs["coded"], inputs["coded"]["count"])}


def _explained(expected: Value, got: Value, noun: str) -> Difference | None:
    return _decoding(expected, got, noun)


def _decode_judge(passed: str, ideas: tuple[WrongModel, ...]) -> Judge:
    return Judge(
        truth=_decode_truth,
        passed=passed,
        noun="tensor of patterns",
        call=_where("decode"),
        compare=_explained,
        wrong=ideas,
    )


DECODE = _decode_judge("Every bit comes back.", _IDEAS)
DECODE_ESCAPES = _decode_judge("Every bit of all 65,536 patterns comes back.", (*_ESCAPE_IDEAS, *_IDEAS))

_Outcomes = Sequence[tuple[object, Outcome]]


def _forms(outcomes: _Outcomes) -> list[tuple[tuple[int, ...], Mapping[str, Value]]]:
    """The patterns that went in and the form that came out, of each case with a form of the right kind."""
    found = []
    for case, outcome in outcomes:
        form = outcome.value
        of_its_kind = isinstance(form, dict) and set(form) == set(PARTS) and type(form["base"]) is int
        if of_its_kind and all(isinstance(form[name], bytes) for name in PARTS[2:]):
            found.append((patterns(case.inputs["bits"]), form))  # type: ignore[attr-defined]
    return found


def _codes(form: Mapping[str, Value], high_first: bool = False) -> list[int]:
    return [c for pair in form["codes"] for c in ((pair >> 4, pair & 15) if high_first else (pair & 15, pair >> 4))]


def _exponents(bits: Sequence[int]) -> list[int]:
    return [value >> 7 & 255 for value in bits]


_Test = Callable[[Sequence[int], Mapping[str, Value]], bool]


def _every(test: _Test, right: _Test | None = None) -> Callable[[_Outcomes], bool]:
    """Whether each form passes ``test``, and not all of them ``right``, which is how it should be."""
    return lambda outcomes: (
        bool(forms := _forms(outcomes))
        and all(test(bits, form) for bits, form in forms)
        and (right is None or not all(right(bits, form) for bits, form in forms))
    )


def _in_window(form: Mapping[str, Value], exponent: int) -> bool:
    return bool(0 <= exponent - form["base"] < WINDOW)


def _codes_are(high_first: bool) -> _Test:
    def test(bits: Sequence[int], form: Mapping[str, Value]) -> bool:
        wanted = [e - form["base"] if _in_window(form, e) else ESCAPE for e in _exponents(bits)]
        return _codes(form, high_first)[: len(bits)] == wanted

    return test


def _escapes_are(make: Callable[[list[int], int], list[int]]) -> _Test:
    def test(bits: Sequence[int], form: Mapping[str, Value]) -> bool:
        outside = [e for e in _exponents(bits) if not _in_window(form, e)]
        return list(form["escapes"]) == make(outside, form["base"])

    return test


def _same_escapes(bits: Sequence[int], form: Mapping[str, Value]) -> bool:
    return sorted(form["escapes"]) == sorted(e for e in _exponents(bits) if not _in_window(form, e))


_RIGHT_ESCAPES = _escapes_are(lambda outside, base: outside)


def _window_of(pick: Callable[[Sequence[int]], int]) -> Callable[[_Outcomes], bool]:
    return _every(lambda bits, form: form["base"] == pick(_exponents(bits)))


_PACKING = (
    WrongModel(
        "One code a byte",
        "A code has 4 bits: two of them share a byte, or the form is no smaller than the weights.",
        pattern=_every(lambda bits, form: len(form["codes"]) == len(bits)),
    ),
    WrongModel(
        "The high half first",
        "The first of two codes goes into the low four bits of its byte.",
        pattern=_every(_codes_are(True), _codes_are(False)),
    ),
    WrongModel(
        "The last code of an odd number is dropped",
        "An odd number of codes has a last byte of its own, half of it unused.",
        pattern=_every(lambda bits, form: len(form["codes"]) == len(bits) // 2),
    ),
    WrongModel(
        "The sign is lost",
        "Bit 7 of sign_mantissa is the sign, bit 15 of the weight.",
        pattern=_every(lambda bits, form: list(form["sign_mantissa"]) == [value & 0x7F for value in bits]),
    ),
    WrongModel(
        "The low byte of the weight",
        "Bit 7 of the weight is the exponent's lowest bit, not its sign: the sign is bit 15.",
        pattern=_every(lambda bits, form: list(form["sign_mantissa"]) == [value & 0xFF for value in bits]),
    ),
    WrongModel(
        "Codes count from somewhere else than base",
        "A code is exponent - base, from 0 to 14.",
        pattern=_every(
            lambda bits, form: (
                len(form["codes"]) == (len(bits) + 1) // 2
                and _codes(form)[: len(bits)] != [e - form["base"] for e in _exponents(bits)]
                and len({(code - e) & 15 for code, e in zip(_codes(form), _exponents(bits), strict=False)}) == 1
            )
        ),
    ),
)

_WINDOW = (
    WrongModel(
        "The window begins at the smallest exponent",
        "One weight that is nearly zero would take the window away from all others: take the 15 neighbours that "
        "hold the most weights.",
        pattern=_window_of(lambda exponents: min(241, min(exponents))),
    ),
    WrongModel(
        "The window begins at the most frequent exponent",
        "Exponents are frequent on both sides of that one: sum up 15 neighbours for each place to begin.",
        pattern=_window_of(lambda found: min(241, max(sorted(set(found)), key=found.count))),
    ),
    WrongModel(
        "The window ends at the largest exponent",
        "An infinity would take the window away from all others: take the 15 neighbours that hold the most weights.",
        pattern=_window_of(lambda exponents: max(0, max(exponents) - 14)),
    ),
    WrongModel(
        "Everything escapes",
        "Then 20 bits a weight cross the link in place of 16: escapes are for what is rare.",
        pattern=_every(lambda bits, form: len(form["escapes"]) == len(bits)),
    ),
    WrongModel(
        "Codes instead of exponents among the escapes",
        "An escape's byte is the exponent itself: it escapes because exponent - base fits no code.",
        pattern=_every(_escapes_are(lambda outside, base: [e - base & 255 for e in outside]), _RIGHT_ESCAPES),
    ),
    WrongModel(
        "Escapes in another order",
        "They lie in the order of the weights, or nobody knows which is whose.",
        pattern=_every(_same_escapes, _RIGHT_ESCAPES),
    ),
)


def _encode_judge(passed: str) -> Judge:
    return Judge(
        truth=dict,
        passed=passed,
        noun="dict",
        call=_where("encode"),
        compare=_encoding,
        wrong=(*_PACKING, *_WINDOW),
    )


ENCODE = _encode_judge("The form decodes to the very same bits.")
ENCODE_ESCAPES = _encode_judge("Exact for every pattern, within the bound.")
