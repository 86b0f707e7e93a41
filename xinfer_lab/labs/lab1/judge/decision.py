"""Lab 1: the decision where the layers live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome, Refuses, WrongModel, equal

__all__ = ["DECIDE", "REFUSE_BUDGET", "decide", "same_decision"]

Inputs = Mapping[str, Value]


def decide(
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
    while used + sizes["layer"] < budget + (not strict) and (slots < layers or not clamp) and slots < 1000:
        used, slots = used + sizes["layer"], slots + 1
    if slots >= layers and clamp:
        return "resident"
    wanted = min(2, layers)
    if slots < wanted:
        needed = sizes["always"] + wanted * sizes["layer"]
        reason = f"the least that works is {needed:,} bytes and the budget is {budget:,}"
        return Refuses("DoesNotFit", reason, (needed, budget))
    return slots if largest else 2


def _slots(inputs: Inputs) -> int:
    return int((inputs["budget"] - inputs["sizes"]["always"]) // inputs["sizes"]["layer"])


def _no_room_for_all(inputs: Inputs) -> Value:
    slots = _slots(inputs)
    if slots != inputs["sizes"]["layers"]:
        return decide(inputs)
    return slots if slots >= 2 else Refuses("DoesNotFit", "")


def _another_spelling(outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
    resident = [outcome.value for case, outcome in outcomes if decide(case.inputs) == "resident"]
    other = [word for word in resident if word != "resident"]
    return bool(other) and all(isinstance(word, str) and word.strip().lower() == "resident" for word in other)


def _all_or_nothing(inputs: Inputs) -> Value:
    return "resident" if decide(inputs) == "resident" else Refuses("DoesNotFit", "")


def _off_by_one(inputs: Inputs) -> Value:
    right = decide(inputs)
    return right + 1 if isinstance(right, int) else right


def _needs(slots: Callable[[Mapping[str, Value]], int]) -> Callable[[Inputs], Value]:
    def model(inputs: Inputs) -> Value:
        right, sizes = decide(inputs), inputs["sizes"]
        if not isinstance(right, Refuses):
            return right
        return Refuses("DoesNotFit", "", (sizes["always"] + slots(sizes) * sizes["layer"], inputs["budget"]))

    return model


def _one_slot(inputs: Inputs) -> Value:
    right, sizes = decide(inputs), inputs["sizes"]
    fits = sizes["always"] + sizes["layer"] <= inputs["budget"]
    return 1 if isinstance(right, Refuses) and fits else right


def _floated(inputs: Inputs) -> Value:
    sizes, budget = inputs["sizes"], inputs["budget"]
    slots = int((budget - sizes["always"]) / sizes["layer"])
    if slots >= sizes["layers"]:
        return "resident"
    return slots if slots >= 2 else decide(inputs)


def _swapped(inputs: Inputs) -> Value:
    right = decide(inputs)
    return Refuses("DoesNotFit", "", right.args[::-1]) if isinstance(right, Refuses) and right.args else right


def _call(case: Case) -> str:
    sizes = case.inputs["sizes"]
    return (
        f"decide_residency({{'layers': {sizes['layers']}, 'layer': {sizes['layer']:_}, "
        f"'always': {sizes['always']:_}}}, {case.inputs['budget']:_}): {case.label}"
    )


def same_decision(expected: Value, got: Value, noun: str) -> Difference | None:
    """As `equal`, for a value that may be a word or a number: the one in place of the other is no fault of form."""
    difference = equal(expected, got, noun)
    if difference is not None and (got == "resident" or type(got) is int):
        return replace(difference, headline="This is not the right decision.", got=shown(got))
    return difference


DECIDE = Judge(
    truth=decide,
    passed="Resident where it fits, else the largest pool.",
    noun="decision",
    call=_call,
    compare=same_decision,
    wrong=(
        WrongModel(
            "What always stays is forgotten",
            "The slots get what is left of the budget after sizes['always'].",
            lambda inputs: decide(inputs, always=False),
            rule="always",
        ),
        WrongModel(
            "Exactly full counts as too full",
            "A budget is a limit that may be reached: <=, not <.",
            lambda inputs: decide(inputs, strict=True),
            rule="equal_fits",
        ),
        WrongModel(
            "Room for exactly all layers is not taken for resident",
            "Where as many slots fit as there are layers, everything fits: >=, not >.",
            _no_room_for_all,
            rule="resident",
        ),
        WrongModel(
            "The pool is tested before everything is",
            'Ask first whether all layers fit, for that is "resident"; a pool comes second.',
            lambda inputs: _slots(inputs) if _slots(inputs) >= 2 else decide(inputs),
            rule="resident",
        ),
        WrongModel(
            "The word is spelt in another way",
            'The answer is "resident", in small letters and without spaces around it.',
            pattern=_another_spelling,
            rule="word",
        ),
        WrongModel(
            "Always a pool of two",
            "The rule asks for the largest pool that fits.",
            lambda inputs: decide(inputs, largest=False),
            rule="largest",
        ),
        WrongModel(
            "A pool as large as the model",
            'From sizes["layers"] slots on nothing streams: the answer is "resident".',
            lambda inputs: decide(inputs, clamp=False),
            rule="resident",
        ),
        WrongModel("Rounded up", "Part of a slot is no slot: use //, which rounds down.", _off_by_one, rule="whole"),
        WrongModel(
            "All or nothing",
            "A model that does not fit as a whole can stream through a pool.",
            _all_or_nothing,
            rule="pool",
        ),
        WrongModel(
            "The quotient is a float",
            "Above 2**53 a float does not tell a number from the next: use //, which keeps whole numbers whole.",
            lambda inputs: _floated(inputs),
            rule="whole",
        ),
    ),
    besides=("keeps_inputs",),
)


def _not_refused(expected: Value, got: Value, noun: str) -> Difference | None:
    return None


REFUSE_BUDGET = Judge(
    truth=decide,
    passed="A budget that cannot work is refused with the figures that help.",
    noun="decision",
    call=_call,
    compare=_not_refused,
    wrong=(
        WrongModel(
            "A pool of one is accepted",
            "With one slot nothing can be copied while a layer computes: 2 is the least.",
            _one_slot,
            rule="two_slots",
        ),
        WrongModel(
            "needed is the whole model",
            "needed is the least that works: what always stays and two slots.",
            _needs(lambda sizes: sizes["layers"]),
            rule="needed",
        ),
        WrongModel(
            "needed is one slot", "Two slots are the least for streaming.", _needs(lambda sizes: 1), rule="needed"
        ),
        WrongModel(
            "Two slots for one layer",
            "A model of one layer needs no second slot: min(2, layers).",
            _needs(lambda sizes: 2),
            rule="single",
        ),
        WrongModel(
            "needed leaves out what always stays",
            "needed is compared with the budget, so it must count everything.",
            lambda inputs: (
                Refuses("DoesNotFit", "", (right.args[0] - inputs["sizes"]["always"], inputs["budget"]))
                if isinstance(right := decide(inputs), Refuses) and right.args
                else right
            ),
            rule="needed",
        ),
        WrongModel(
            "needed and available are swapped",
            "DoesNotFit(needed, available): first what it takes.",
            _swapped,
            rule="needed",
        ),
    ),
)
