"""Lab 1: the judges of its pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.truth.lab1_files import HEADER, LAYERS, RANGES, REFUSE_HEADER, REFUSE_RANGES
from xinfer_lab.grading.truth.lab1_sizes import KV_CACHE, LAYER, MODEL
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify import Difference, Judge, Refuses, WrongModel

__all__ = ["JUDGES"]

Inputs = Mapping[str, Value]


def _decide(
    inputs: Inputs,
    *,
    least: int = 2,
    strict: bool = False,
    clamp: bool = True,
    largest: bool = True,
    always: bool = True,
) -> Value:
    """Count slots one by one until the next would not fit: slow for a machine, plain for a reader."""
    sizes, budget = inputs["sizes"], inputs["budget"]
    layers, used, slots = sizes["layers"], sizes["always"] if always else 0, 0
    while used + sizes["layer"] < budget + (not strict) and (slots < layers or not clamp) and slots < 200:
        used, slots = used + sizes["layer"], slots + 1
    if slots >= layers and clamp:
        return "resident"
    wanted = min(least, layers)
    if slots < wanted:
        needed = sizes["always"] + wanted * sizes["layer"]
        reason = f"the least that works is {needed:,} bytes and the budget is {budget:,}"
        return Refuses("DoesNotFit", reason, (needed, budget))
    return slots if largest else least


def _all_or_nothing(inputs: Inputs) -> Value:
    return "resident" if _decide(inputs) == "resident" else Refuses("DoesNotFit", "")


def _off_by_one(inputs: Inputs) -> Value:
    right = _decide(inputs)
    return right + 1 if isinstance(right, int) else right


def _needs(slots: Callable[[Mapping[str, Value]], int]) -> Callable[[Inputs], Value]:
    def model(inputs: Inputs) -> Value:
        right, sizes = _decide(inputs), inputs["sizes"]
        if not isinstance(right, Refuses):
            return right
        return Refuses("DoesNotFit", "", (sizes["always"] + slots(sizes) * sizes["layer"], inputs["budget"]))

    return model


def _swapped(inputs: Inputs) -> Value:
    right = _decide(inputs)
    return Refuses("DoesNotFit", "", right.args[::-1]) if isinstance(right, Refuses) and right.args else right


def _decide_call(case: Case) -> str:
    sizes = case.inputs["sizes"]
    return (
        f"decide_residency({{'layers': {sizes['layers']}, 'layer': {sizes['layer']:_}, 'always': {sizes['always']:_}}}, "
        f"{case.inputs['budget']:_}): {case.label}"
    )


DECIDE = Judge(
    truth=_decide,
    passed="Resident where it fits, else the largest pool.",
    noun="decision",
    call=_decide_call,
    wrong=(
        WrongModel(
            "What always stays is forgotten",
            "The slots get what is left of the budget after sizes['always'].",
            lambda inputs: _decide(inputs, always=False),
        ),
        WrongModel(
            "Exactly full counts as too full",
            "A budget is a limit that may be reached: <=, not <.",
            lambda inputs: _decide(inputs, strict=True),
        ),
        WrongModel(
            "Always a pool of two",
            "The rule asks for the largest pool that fits.",
            lambda inputs: _decide(inputs, largest=False),
        ),
        WrongModel(
            "A pool as large as the model",
            'From sizes["layers"] slots on nothing streams: the answer is "resident".',
            lambda inputs: _decide(inputs, clamp=False),
        ),
        WrongModel("Rounded up", "Part of a slot is no slot: use //, which rounds down.", _off_by_one),
        WrongModel(
            "All or nothing", "A model that does not fit as a whole can stream through a pool.", _all_or_nothing
        ),
    ),
)


def _not_refused(expected: Value, got: Value, noun: str) -> Difference | None:
    return None


REFUSE_BUDGET = Judge(
    truth=_decide,
    passed="A budget that cannot work is refused with the figures that help.",
    noun="decision",
    call=_decide_call,
    compare=_not_refused,
    wrong=(
        WrongModel(
            "A pool of one is accepted",
            "With one slot nothing can be copied while a layer computes: 2 is the least.",
            lambda inputs: _decide(inputs, least=1),
        ),
        WrongModel(
            "needed is the whole model",
            "needed is the least that works: what always stays and two slots.",
            _needs(lambda sizes: sizes["layers"]),
        ),
        WrongModel("needed is one slot", "Two slots are the least for streaming.", _needs(lambda sizes: 1)),
        WrongModel(
            "Two slots for one layer",
            "A model of one layer needs no second slot: min(2, layers).",
            _needs(lambda sizes: 2),
        ),
        WrongModel(
            "needed leaves out what always stays",
            "needed is compared with the budget, so it must count everything.",
            lambda inputs: (
                Refuses("DoesNotFit", "", (right.args[0] - inputs["sizes"]["always"], inputs["budget"]))
                if isinstance(right := _decide(inputs), Refuses) and right.args
                else right
            ),
        ),
        WrongModel("needed and available are swapped", "DoesNotFit(needed, available): first what it takes.", _swapped),
    ),
)


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
            "A": "The 7B model has more elements in each head and more layers, not fewer.",
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
    "lab1.explain_pool": _choice(
        "B",
        {
            "A": "A slot takes as many bytes as any other; the budget does not choose.",
            "C": "The link is as fast for a pool of 27 as for one of 2.",
            "D": "The compute of a layer does not depend on where its weights came from.",
        },
    ),
}
