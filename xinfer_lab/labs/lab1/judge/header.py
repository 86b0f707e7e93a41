"""Lab 1: what a safetensors header says, and which files have none that can be read."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome, Refuses, WrongModel
from xinfer_lab.labs.lab1.judge.refusals import JSON_ERRORS, Inputs, any_answer, refuses

__all__ = ["HEADER", "REFUSE_HEADER"]

Outcomes = Sequence[tuple[Case, Outcome]]
LONGEST = 100_000_000


def _header(
    inputs: Inputs,
    *,
    length: Callable[[int], int] = lambda n: n,
    parse: Callable[[bytes], Value] = json.loads,
    ignore: str = "",
) -> Value:
    """The header, or why the file is refused. An answer may read n as another ``length``, ``parse`` the text in its own
    way, or ``ignore`` one rule."""
    file = inputs["file"]
    if file["size"] < 8:
        if ignore == "short":
            return Refuses("error", "", also=("error",))
        return refuses("a file of fewer than 8 bytes has no length")
    n = length(file["claimed"])
    if n > LONGEST and ignore != "limit":
        return refuses(f"the header may be at most {LONGEST:,} bytes long, and this one says {n:,}")
    if n > file["size"] - 8 and ignore != "fits":
        return refuses(f"a header of {n:,} bytes does not fit a file of {file['size']:,}")
    if n and (n < 0 or file["claimed"] > LONGEST):
        return Refuses("ReadTooMuch", "", also=("ReadTooMuch",))
    if n == 0 and ignore == "empty":
        return {}, 8
    try:
        header = parse(_text(file, n))
    except (ValueError, SyntaxError, RecursionError):
        return refuses("the header is not JSON", *JSON_ERRORS)
    if not isinstance(header, dict) and ignore != "object":
        return refuses(f"the header must be a JSON object, and this is a {type(header).__name__}")
    return header, 8 + n


def _text(file: Mapping[str, Value], n: int) -> bytes:
    """What the file gives for its header; of the spaces and zeros behind the text no more than matter."""
    text: bytes = file["text"]
    spaces: int = min(file.get("spaces", 0), n - len(text))
    zeros: int = min(n, file["size"] - 8) - len(text) - spaces
    return text[:n] + b" " * min(spaces, 8) + bytes(max(0, min(zeros, 8)))


def _signed(n: int) -> int:
    return n if n < 2**63 else n - 2**64


def _first_value(text: bytes) -> Value:
    """The JSON value that the text begins with, whatever lies behind it."""
    return json.JSONDecoder().raw_decode(text.decode())[0]


def _python(text: bytes) -> Value:
    """As an evaluation by Python would read it, with JSON's own words known."""
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text.decode())


def _any_bytes(text: bytes) -> Value:
    return json.loads(text.decode(errors="replace"))


def _as_if(**wrong: Any) -> Callable[[Inputs], Value]:
    return lambda inputs: _header(inputs, **wrong)


def _frugal(inputs: Inputs, outcome: Outcome) -> Difference | None:
    asked, allowed = outcome.observed.get("asked"), outcome.observed.get("allowed")
    if type(asked) is int and type(allowed) is int and asked > allowed:
        hint = "Check the length against the limit and the file's size before you read that many bytes."
        return Difference(
            "", f"at most {allowed:,} bytes read", f"{asked:,} bytes asked for", "It reads too much.", hint
        )
    return None


def _start(change: Callable[[int], int]) -> Callable[[Inputs], Value]:
    def model(inputs: Inputs) -> Value:
        truth = _header(inputs)
        return truth if isinstance(truth, Refuses) else (truth[0], change(truth[1]))

    return model


def _sound(outcomes: Outcomes) -> list[tuple[Case, Outcome]]:
    return [(case, outcome) for case, outcome in outcomes if not isinstance(_header(case.inputs), Refuses)]


def _first_read(outcome: Outcome) -> tuple[int, int]:
    """Position and count of the first read; (-1, -1) where there was none, or none that can be believed."""
    match outcome.observed.get("requests"):
        case [[int(position), int(count)], *_]:
            return position, count
    return -1, -1


def _did_not_go_back(outcomes: Outcomes) -> bool:
    return all(_first_read(outcome)[0] == case.inputs["file"]["size"] for case, outcome in _sound(outcomes))


def _swapped_length(outcomes: Outcomes) -> bool:
    """Each sound file was asked for as many bytes as its length gives when read backwards; or was refused with that
    number in the message."""

    def swapped(case: Case, outcome: Outcome) -> bool:
        wrong = int.from_bytes(case.inputs["file"]["claimed"].to_bytes(8, "little"), "big")
        requests = outcome.observed.get("requests")
        counts = [request[-1] for request in requests if request] if isinstance(requests, list) else []
        told = re.sub(r"(?<=\d)[,_](?=\d)", "", outcome.message)
        return wrong in counts or str(wrong) in told

    return all(swapped(case, outcome) for case, outcome in _sound(outcomes))


def _refused_by_length(outcomes: Outcomes) -> bool:
    """Each sound file was refused after a look at its first 8 bytes and nothing else."""
    return all(
        outcome.refused_as(refuses("")) and outcome.observed.get("asked") == 8 and _first_read(outcome) == (0, 8)
        for _, outcome in _sound(outcomes)
    )


READS = (
    WrongModel(
        "The file is read from its end",
        "file.seek(0, 2) went there to find the size; file.seek(0) goes back to the first byte.",
        pattern=_did_not_go_back,
    ),
    WrongModel(
        "The bytes of the length are in the wrong order",
        'It is little-endian: the first byte counts ones, the second 256s. In Python: int.from_bytes(..., "little").',
        pattern=_swapped_length,
        rule="little_endian",
    ),
    WrongModel(
        "Sound files are refused for their length",
        "Print n for this file. Is it read little-endian (the first byte counts ones, the second 256s), "
        "and is it compared as rules 2 and 3 say?",
        pattern=_refused_by_length,
    ),
)


def _no_metadata(inputs: Inputs) -> Value:
    truth = _header(inputs)
    if isinstance(truth, Refuses):
        return truth
    return {name: entry for name, entry in truth[0].items() if name != "__metadata__"}, truth[1]


def _of_file(case: Case) -> str:
    file = case.inputs["file"]
    return f"read_header of {case.label} ({file['size']:,} bytes; its first 8 say {file['claimed']:,})"


HEADER = Judge(
    truth=_header,
    passed="Headers read by hand, the data left alone.",
    noun="pair (header, data_start)",
    call=_of_file,
    also=_frugal,
    wrong=(
        WrongModel(
            "The 8 bytes of the length are forgotten",
            "The data begins behind the length and the header: 8 + n.",
            _start(lambda start: start - 8),
            rule="start",
        ),
        WrongModel(
            "The data begins right behind the length",
            "The header lies between the length and the data.",
            _start(lambda start: 8),
        ),
        WrongModel(
            "data_start is counted from the length",
            "8 + n, counted from the file's first byte.",
            _start(lambda start: start + 8),
        ),
        *READS,
        WrongModel(
            "__metadata__ is dropped",
            "This function returns the header as it is; the next one skips __metadata__.",
            _no_metadata,
            rule="as_is",
        ),
        WrongModel(
            "The header is taken for ASCII",
            "A tensor's name may have any letters: the header is UTF-8.",
            _as_if(parse=lambda text: json.loads(text.decode("ascii"))),
            rule="utf8",
        ),
        WrongModel(
            "The header is read as Python",
            "JSON has words that Python lacks (true, null): json.loads reads it, eval does not.",
            _as_if(parse=lambda text: ast.literal_eval(text.decode())),
            rule="json",
        ),
    ),
    besides=("frugal",),
)


REFUSE_HEADER = Judge(
    truth=_header,
    passed="Files that are no safetensors files are refused before they can do harm.",
    noun="header",
    call=_of_file,
    also=_frugal,
    compare=any_answer,
    wrong=(
        WrongModel(
            "Any JSON will do",
            "The header must be a JSON object; a list or a number has no tensors.",
            _as_if(ignore="object"),
            rule="object",
        ),
        WrongModel(
            "The limit of 100,000,000 bytes is missing",
            "A length above it is refused before reading.",
            _as_if(ignore="limit"),
            rule="limit",
        ),
        WrongModel(
            "A length of one byte more than the file has is let through",
            "Compare n with what the file has behind its first 8 bytes: n > size - 8.",
            lambda inputs: None if inputs["file"]["claimed"] == inputs["file"]["size"] - 7 else _header(inputs),
            rule="fits",
        ),
        WrongModel(
            "The file's size is not looked at",
            "A header cannot be longer than what follows the first 8 bytes.",
            _as_if(ignore="fits"),
            rule="fits",
        ),
        WrongModel(
            "The limit itself is refused",
            "A header of exactly 100,000,000 bytes is allowed: refuse n > 100_000_000.",
            lambda inputs: refuses("") if inputs["file"]["claimed"] == LONGEST else _header(inputs),
            rule="limit",
        ),
        WrongModel(
            "The length is read as a signed number",
            "n is unsigned: of 2**63 and more it must not become a number below 0. int.from_bytes reads it so; struct "
            'does with "<Q", not with "<q".',
            _as_if(length=_signed),
            rule="unsigned",
        ),
        WrongModel(
            "Only the first four bytes of the length are read",
            "n has all 8 bytes: a file whose length is 2**32 and a bit says something else than its first four.",
            _as_if(length=lambda n: n % 2**32),
            rule="eight_bytes",
        ),
        WrongModel(
            "A file shorter than its length breaks the reader",
            "With fewer than 8 bytes there is no n to take apart: test the size first, and refuse.",
            _as_if(ignore="short"),
            rule="short",
        ),
        WrongModel(
            "No header is taken for an empty one",
            "n = 0 is no header: an empty text is not JSON. The empty header is {} and has two bytes.",
            _as_if(ignore="empty"),
            rule="empty",
        ),
        WrongModel(
            "What stands behind the JSON object is not looked at",
            "All n bytes are the header: behind the object there may be white space and nothing else.",
            _as_if(parse=_first_value),
            rule="nothing_behind",
        ),
        WrongModel(
            "The header is read as Python",
            "{'w': 1} is Python and not JSON, and whoever evaluates a file runs what a stranger wrote: json.loads does "
            "not.",
            _as_if(parse=_python),
            rule="json",
        ),
        WrongModel(
            "Bytes that are no UTF-8 are let through",
            "JSON is UTF-8 text: bytes that cannot be read as such are no JSON, and nobody may replace them.",
            _as_if(parse=_any_bytes),
            rule="utf8",
        ),
        *READS,
    ),
    besides=("frugal", "refuses"),
)
