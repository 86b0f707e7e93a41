"""Lab 1: what a safetensors header says, and which files have none that can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.truth.refusals import Inputs, any_answer, refuses
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify import Difference, Judge, Outcome, Refuses, WrongModel

__all__ = ["HEADER", "REFUSE_HEADER"]

Outcomes = Sequence[tuple[Case, Outcome]]
LONGEST = 100_000_000


def _header(inputs: Inputs) -> Value:
    file = inputs["file"]
    if file["size"] < 8:
        return refuses("a file of fewer than 8 bytes has no length")
    if file["claimed"] > LONGEST:
        return refuses(f"the header may be at most {LONGEST:,} bytes long, and this one says {file['claimed']:,}")
    if file["claimed"] > file["size"] - 8:
        return refuses(f"a header of {file['claimed']:,} bytes does not fit a file of {file['size']:,}")
    try:
        header = json.loads(file["text"][: file["claimed"]])
    except (ValueError, RecursionError):
        return refuses("the header is not JSON")
    if not isinstance(header, dict):
        return refuses(f"the header must be a JSON object, and this is a {type(header).__name__}")
    return header, 8 + file["claimed"]


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
        "ValueError" in outcome.bases and outcome.observed.get("asked") == 8 and _first_read(outcome) == (0, 8)
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
        ),
    ),
)


def _accepts(*allowed: str) -> Callable[[Inputs], Value]:
    """Refuses as the truth does, except for reasons that contain one of ``allowed``."""

    def model(inputs: Inputs) -> Value:
        truth = _header(inputs)
        return None if isinstance(truth, Refuses) and any(part in truth.reason for part in allowed) else truth

    return model


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
            _accepts("must be a JSON object"),
        ),
        WrongModel(
            "The limit of 100,000,000 bytes is missing",
            "A length above it is refused before reading.",
            _accepts("may be at most"),
        ),
        WrongModel(
            "The file's size is not looked at",
            "A header cannot be longer than what follows the first 8 bytes.",
            _accepts("does not fit"),
        ),
        WrongModel(
            "A length of one byte more than the file has is let through",
            "Compare n with what the file has behind its first 8 bytes: n > size - 8.",
            lambda inputs: None if inputs["file"]["claimed"] == inputs["file"]["size"] - 7 else _header(inputs),
        ),
        WrongModel(
            "The limit itself is refused",
            "A header of exactly 100,000,000 bytes is allowed: refuse n > 100_000_000.",
            lambda inputs: refuses("") if inputs["file"]["claimed"] == LONGEST else _header(inputs),
        ),
        *READS,
    ),
)
