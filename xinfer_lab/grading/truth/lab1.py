"""Lab 1: the judges of its pieces."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.grading.truth.lab1_decision import DECIDE, REFUSE_BUDGET
from xinfer_lab.grading.truth.lab1_files import HEADER, LAYERS, RANGES, REFUSE_HEADER, REFUSE_RANGES
from xinfer_lab.grading.truth.lab1_gate import GATE
from xinfer_lab.grading.truth.lab1_sizes import KV_CACHE, LAYER, MODEL
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify import Difference, Judge

__all__ = ["JUDGES"]


def _made(expected: Value, got: Value, noun: str) -> Difference | None:
    """Whether a prediction was made: a number in the range, or one of the choices. Which one does not matter."""
    choices = expected.get("choices")
    if choices is not None:
        if isinstance(got, str) and got in choices:
            return None
        wanted = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    else:
        if type(got) in (int, float) and expected["low"] <= got <= expected["high"]:
            return None
        wanted = f"a number from {expected['low']} to {expected['high']}"
    return Difference("", wanted, shown(got), "Type your prediction first; any guess earns the point.")


PREDICTION = Judge(
    truth=dict,
    passed="Your prediction is noted. Run on and compare.",
    noun="prediction",
    compare=_made,
    of_a_call=False,
)


def _choice(letter: str, why_not: Mapping[str, str]) -> Judge:
    def compare(expected: Value, got: Value, noun: str) -> Difference | None:
        if got == expected and type(got) is str:
            return None
        if not (isinstance(got, str) and got in {expected, *why_not}):
            wanted = "one of " + ", ".join(f'"{choice}"' for choice in sorted({expected, *why_not}))
            return Difference("", wanted, shown(got), "Choose one of the letters.")
        return Difference("", "another choice", f'"{got}"', "That is not the reason.", why_not[got])

    return Judge(
        truth=lambda inputs: letter, passed="That is the reason.", noun="choice", compare=compare, of_a_call=False
    )


JUDGES: dict[str, Judge] = {
    "lab1.predict_embedding": PREDICTION,
    "lab1.layer_bytes": LAYER,
    "lab1.model_bytes": MODEL,
    "lab1.predict_cache": PREDICTION,
    "lab1.kv_cache_bytes": KV_CACHE,
    "lab1.explain_cache": _choice(
        "C",
        {
            "A": "A head is 128 numbers wide in both models.",
            "B": "Both caches are kept in bfloat16.",
            "D": "The vocabulary has no part in the cache.",
        },
    ),
    "lab1.read_header": HEADER,
    "lab1.refuse_header": REFUSE_HEADER,
    "lab1.tensor_ranges": RANGES,
    "lab1.refuse_ranges": REFUSE_RANGES,
    "lab1.layer_table": LAYERS,
    "lab1.predict_pool": PREDICTION,
    "lab1.decide_residency": DECIDE,
    "lab1.refuse_budget": REFUSE_BUDGET,
    "lab1.gate": GATE,
    "lab1.explain_pool": _choice(
        "B",
        {
            "A": "A slot takes as many bytes as any other; the budget does not choose.",
            "C": "The link is as fast for a pool of 27 as for one of 2.",
            "D": "The compute of a layer does not depend on where its weights came from.",
        },
    ),
}
