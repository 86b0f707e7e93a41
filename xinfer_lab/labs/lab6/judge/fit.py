"""Lab 6: how many layers stream, and through how many slots; and what wrong ideas would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Judge, Refuses, WrongModel

__all__ = ["FIT"]

Inputs = Mapping[str, Value]
Model = Callable[[Inputs], Value]


def _fit(
    *,
    slots: int = 2,
    least: int = 2,
    room: Callable[[Inputs], int] = lambda i: (i["budget"] - i["always"]) // i["layer_bytes"],
    refuses: bool = True,
    all_at: int = 0,
    resident: Callable[[int, int], int] = lambda room, slots: room - slots,
) -> Model:
    def decide(inputs: Inputs) -> Value:
        fits = room(inputs)
        if fits >= inputs["layers"] + all_at:
            return [0, 0]
        if fits < least:
            return Refuses("ValueError", "two slots do not fit") if refuses else [inputs["layers"], slots]
        stay = max(0, resident(fits, slots))
        return [inputs["layers"] - stay, slots]

    return decide


def _fit_call(case: Case) -> str:
    inputs = case.inputs
    return (
        f"fit(budget={inputs['budget']:,}, always={inputs['always']:,}, layers={inputs['layers']}, "
        f"layer_bytes={inputs['layer_bytes']:,}): {case.label}"
    )


FIT = Judge(
    truth=_fit(),
    passed="As many stay as fit, two slots for the rest, or a refusal.",
    noun="pair (streamed, slots)",
    call=_fit_call,
    wrong=(
        WrongModel(
            "The slots are forgotten",
            "Two layers' worth of the room goes to the slots; what is left stays.",
            _fit(resident=lambda room, slots: room),
            rule="slots_count",
        ),
        WrongModel(
            "All the room goes to slots",
            "More slots move no fewer bytes. A layer that stays crosses the link never.",
            lambda i: _all_slots(i),
            rule="rest_stays",
        ),
        WrongModel(
            "Slots even where all layers fit",
            "Where all layers fit, none streams and there are no slots.",
            _fit(all_at=2),
            rule="all_stay",
        ),
        WrongModel(
            "What is always there is forgotten",
            "Embedding, cache and working space take their bytes of the budget first.",
            _fit(room=lambda i: i["budget"] // i["layer_bytes"]),
            rule="always",
        ),
        WrongModel(
            "Room is rounded up",
            "Half a layer's room holds no layer: round down.",
            _fit(room=lambda i: -(-(i["budget"] - i["always"]) // i["layer_bytes"])),
            rule="whole",
        ),
        WrongModel(
            "An exact fit does not count",
            "A budget that is exactly used up is kept.",
            _fit(room=lambda i: (i["budget"] - i["always"] - 1) // i["layer_bytes"]),
            rule="exactly",
        ),
        WrongModel(
            "One slot",
            "One slot cannot be filled while it is read: two at least.",
            _fit(slots=1, least=1),
            rule="two_slots",
        ),
        WrongModel(
            "Three slots",
            "The third slot would keep a layer resident instead.",
            _fit(slots=3, least=3),
            rule="two_slots",
        ),
        WrongModel(
            "No refusal",
            "Where not even two slots fit, nothing can run: raise ValueError.",
            _fit(refuses=False),
            rule="refuse",
        ),
        WrongModel(
            "The layers that stay are returned",
            "The first number is how many layers stream.",
            lambda i: _stay(i),
            rule="streamed",
        ),
        WrongModel(
            "The quotient is a float",
            "Above 2**53 a float does not tell a number from the next: use //, which keeps whole numbers whole.",
            _fit(room=lambda i: int((i["budget"] - i["always"]) / i["layer_bytes"])),
            rule="whole",
        ),
    ),
    besides=("refuses",),
)


def _all_slots(inputs: Inputs) -> Value:
    room = (inputs["budget"] - inputs["always"]) // inputs["layer_bytes"]
    found = _fit()(inputs)
    return found if isinstance(found, Refuses) or found == [0, 0] else [inputs["layers"], room]


def _stay(inputs: Inputs) -> Value:
    found = _fit()(inputs)
    return found if isinstance(found, Refuses) else [inputs["layers"] - found[0], found[1]]
