"""Lab 6: what binds a pass, what to give up, which layers stream and how many; and what wrong ideas would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, Refuses, WrongModel, first_difference

__all__ = ["BOUND", "FIT", "SPREAD", "VICTIM"]

Inputs = Mapping[str, Value]
Model = Callable[[Inputs], Value]


def _times(inputs: Inputs) -> dict[str, float]:
    times = {"computing": inputs["resident"], "link": inputs["moved"] / inputs["link"]}
    if inputs["memcpy"] is not None:
        times["memcpy"] = inputs["moved"] / inputs["memcpy"]
    return times


def _longest(times: Mapping[str, float]) -> dict[str, Value]:
    most = max(times.values())
    return {"time": most, "binds": next(name for name, time in times.items() if time == most)}


def _last(inputs: Inputs) -> dict[str, Value]:
    times = dict(reversed(_times(inputs).items()))
    return _longest(times)


def _sum(inputs: Inputs) -> dict[str, Value]:
    times = _times(inputs)
    return {"time": sum(times.values()), "binds": _longest(times)["binds"]}


def _shortest(inputs: Inputs) -> dict[str, Value]:
    times = _times(inputs)
    least = min(times.values())
    return {"time": least, "binds": next(name for name, time in times.items() if time == least)}


def _without(name: str) -> Model:
    return lambda inputs: _longest({key: time for key, time in _times(inputs).items() if key != name})


def _upside_down(inputs: Inputs) -> dict[str, Value]:
    moved = inputs["moved"] or 1
    return _longest({"computing": inputs["resident"], "link": inputs["link"] / moved})


def _serial_copies(inputs: Inputs) -> dict[str, Value]:
    times = _times(inputs)
    moving = times["link"] + times.get("memcpy", 0)
    slower = "memcpy" if times.get("memcpy", 0) > times["link"] else "link"
    if times["computing"] >= moving:
        return {"time": times["computing"], "binds": "computing"}
    return {"time": moving, "binds": slower}


def _instead(inputs: Inputs) -> dict[str, Value]:
    times = _times(inputs)
    if "memcpy" in times:
        del times["link"]
    return _longest(times)


def _close(expected: Value, got: Value, noun: str) -> Difference | None:
    if not isinstance(got, dict) or set(got) != set(expected):
        found = first_difference(expected, got)
        why = found[3] if found else ""
        headline = "The dict is not of the form that was asked for" + (f": {why}." if why else ".")
        return Difference("", shown(expected), shown(got), headline)
    time = got["time"]
    if type(time) not in (int, float) or abs(time - expected["time"]) > 1e-9 * expected["time"]:
        return Difference("['time']", shown(expected["time"]), shown(time), "The bound is another one.")
    if got["binds"] != expected["binds"]:
        return Difference(
            "['binds']", shown(expected["binds"]), shown(got["binds"]), "The time is right; something else binds."
        )
    return None


BOUND = Judge(
    truth=lambda inputs: _longest(_times(inputs)),
    passed="The longest of the three sets the pace, and it is named.",
    noun="dict",
    call=lambda case: (
        "bound(resident={resident}, moved={moved}, link={link}, memcpy={memcpy})".format(**case.inputs)
        + f": {case.label}"
    ),
    compare=_close,
    wrong=(
        WrongModel("Times added up", "The three run side by side: the longest sets the pace, not their sum.", _sum),
        WrongModel(
            "Whole seconds",
            "Times are seconds with all their decimals: divide with /, and round nothing.",
            lambda inputs: _longest({key: int(time) for key, time in _times(inputs).items()}),
        ),
        WrongModel(
            "Whole seconds of copying",
            "Bytes over bytes a second are no whole number: divide with /, and round nothing.",
            lambda inputs: _longest({k: t if k == "computing" else int(t) for k, t in _times(inputs).items()}),
        ),
        WrongModel("The shortest binds", "A pass is over when its slowest part is.", _shortest),
        WrongModel(
            "The host's copying is left out",
            "Staged layers are first copied by the host; where that is slower than the link, it binds.",
            _without("memcpy"),
        ),
        WrongModel("Computing is left out", "A pass cannot be shorter than its computing.", _without("computing")),
        WrongModel(
            "The link is left out", "Whatever does not stay has to cross the link in every pass.", _without("link")
        ),
        WrongModel("Bandwidth over bytes", "Seconds are bytes divided by bytes a second.", _upside_down),
        WrongModel(
            "Copying and sending in turns",
            "The host fills one half of the ring while the other is sent: the slower of the two counts.",
            _serial_copies,
        ),
        WrongModel(
            "The host's copying in place of the link",
            "Staged bytes are copied by the host and then cross the link all the same.",
            _instead,
        ),
        WrongModel(
            "A tie goes to the last", "On a tie the first of computing, link and memcpy is named.", _last
        ),
    ),
)  # fmt: skip


def _distance(inputs: Inputs) -> Callable[[int], int]:
    """How many layers on from the one that is needed now a layer is needed next."""
    return lambda other: (other - inputs["layer"]) % inputs["layers"]


VICTIM = Judge(
    truth=lambda inputs: max(inputs["held"], key=_distance(inputs)),
    passed="The one that is needed last: Belady's choice.",
    noun="layer",
    call=lambda case: "victim(held={held}, layer={layer}, layers={layers})".format(**case.inputs)[:200],
    wrong=(
        WrongModel(
            "Least recently used",
            "In a cyclic scan the layer that was used longest ago is the very one that is needed next.",
            lambda i: min(i["held"], key=_distance(i)),
        ),
        WrongModel(
            "The highest number", "Behind the last layer comes layer 0: count around the end.", lambda i: max(i["held"])
        ),
        WrongModel(
            "The lowest number", "Layer 0 may be the next one: count around the end.", lambda i: min(i["held"])
        ),
        WrongModel("First in, first out", "When it came does not matter; when it is needed next does.",
                   lambda i: i["held"][0]),
        WrongModel("Last in the list", "The order of the list says nothing.", lambda i: i["held"][-1]),
        WrongModel(
            "The nearest number, around the end either way",
            "The scan goes one way only: a layer just passed is needed last, one just ahead first.",
            lambda i: min(i["held"], key=lambda o: min(_distance(i)(o), -_distance(i)(o) % i["layers"])),
        ),
        WrongModel(
            "The farthest number, around the end either way",
            "The scan goes one way only: a layer just passed is the farthest of all.",
            lambda i: max(i["held"], key=lambda o: min(_distance(i)(o), -_distance(i)(o) % i["layers"])),
        ),
        WrongModel(
            "The farthest number, without the end",
            "Behind the last layer comes layer 0: the distance is counted modulo the number of layers.",
            lambda i: max(i["held"], key=lambda o: abs(o - i["layer"])),
        ),
        WrongModel(
            "A layer that is not held", "Only a layer that is held can be given up.",
            lambda i: (i["layer"] - 1) % i["layers"] if (i["layer"] - 1) % i["layers"] not in i["held"]
            else max(i["held"], key=_distance(i)),
        ),
        WrongModel(
            "The layer that is needed now", "That one comes in; another has to go.", lambda i: i["layer"]
        ),
    ),
)  # fmt: skip


def gaps(chosen: list[int], layers: int) -> list[int]:
    """Layers from each streamed one to the next, around the end of the pass."""
    ahead = [*chosen[1:], chosen[0] + layers] if chosen else []
    return [after - before for before, after in zip(chosen, ahead, strict=True)]


def _spread(expected: Value, got: Value, noun: str) -> Difference | None:
    layers, count = expected["layers"], expected["streamed"]
    wanted = f"{count} of the layers 0 to {layers - 1}, growing, {_wanted_gaps(layers, count)}"
    if not isinstance(got, list) or not all(type(layer) is int for layer in got):
        return Difference("", wanted, shown(got), "A list of layer numbers was asked for.")
    if len(got) != count:
        return Difference("", wanted, shown(got), f"These are {len(got)} layers, not {count}.")
    if any(not 0 <= layer < layers for layer in got):
        return Difference("", wanted, shown(got), "There is no such layer.")
    if got != sorted(set(got)):
        return Difference("", wanted, shown(got), "Each layer once, in growing order.")
    found = gaps(got, layers)
    if found and max(found) - min(found) > 1:
        place = found.index(max(found))
        return Difference(
            "", wanted, f"{shown(got)}: {found[place]} layers from {got[place]} to the next, elsewhere {min(found)}",
            "The streamed layers are not spread evenly.",
        )  # fmt: skip
    return None


def _wanted_gaps(layers: int, count: int) -> str:
    if count == 0:
        return "none"
    low, rest = divmod(layers, count)
    return f"{low} or {low + 1} layers apart" if rest else f"{low} layers apart"


def _as_list(pick: Callable[[int, int], list[int]]) -> Callable[[Any], bool]:
    def same(outcomes: Any) -> bool:
        return all(
            outcome.raised is None and outcome.value == pick(case.inputs["layers"], case.inputs["streamed"])
            for case, outcome in outcomes
        )

    return same


SPREAD = Judge(
    truth=lambda inputs: {"layers": inputs["layers"], "streamed": inputs["streamed"]},
    passed="As far apart as they can be, around the end of the pass too.",
    noun="list of layers",
    call=lambda case: "spread(layers={layers}, streamed={streamed})".format(**case.inputs),
    compare=_spread,
    wrong=(
        WrongModel(
            "All at the beginning",
            "While the layers that stay are computed the link stands still: two slots hold no more than two layers.",
            pattern=_as_list(lambda n, k: list(range(k))),
        ),
        WrongModel(
            "All at the end",
            "While the layers that stay are computed the link stands still: two slots hold no more than two layers.",
            pattern=_as_list(lambda n, k: list(range(n - k, n))),
        ),
        WrongModel(
            "A step that is rounded down",
            "A whole step leaves a long gap behind the last one, around the end of the pass; round each place, not the "
            "step.",
            pattern=_as_list(lambda n, k: [j * (n // k) for j in range(k)] if k else []),
        ),
        WrongModel(
            "From the first to the last layer",
            "Layer 0 follows the last layer: both ends together are one gap of 1.",
            pattern=_as_list(lambda n, k: [round(j * (n - 1) / (k - 1)) for j in range(k)] if k > 1 else [0] * k),
        ),
        WrongModel(
            "Those that stay are spread",
            "The answer is the layers that stream, not those that stay.",
            pattern=_as_list(lambda n, k: [j * n // (n - k) for j in range(n - k)] if n > k else []),
        ),
    ),
)


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
        ),
        WrongModel(
            "All the room goes to slots",
            "More slots move no fewer bytes. A layer that stays crosses the link never.",
            lambda i: _all_slots(i),
        ),
        WrongModel(
            "Slots even where all layers fit",
            "Where all layers fit, none streams and there are no slots.",
            _fit(all_at=2),
        ),
        WrongModel(
            "What is always there is forgotten",
            "Embedding, cache and working space take their bytes of the budget first.",
            _fit(room=lambda i: i["budget"] // i["layer_bytes"]),
        ),
        WrongModel(
            "Room is rounded up",
            "Half a layer's room holds no layer: round down.",
            _fit(room=lambda i: -(-(i["budget"] - i["always"]) // i["layer_bytes"])),
        ),
        WrongModel(
            "An exact fit does not count", "A budget that is exactly used up is kept.",
            _fit(room=lambda i: (i["budget"] - i["always"] - 1) // i["layer_bytes"]),
        ),
        WrongModel("One slot", "One slot cannot be filled while it is read: two at least.", _fit(slots=1, least=1)),
        WrongModel("Three slots", "The third slot would keep a layer resident instead.", _fit(slots=3, least=3)),
        WrongModel(
            "No refusal", "Where not even two slots fit, nothing can run: raise ValueError.", _fit(refuses=False)
        ),
        WrongModel(
            "The layers that stay are returned", "The first number is how many layers stream.",
            lambda i: _stay(i),
        ),
    ),
)  # fmt: skip


def _all_slots(inputs: Inputs) -> Value:
    room = (inputs["budget"] - inputs["always"]) // inputs["layer_bytes"]
    found = _fit()(inputs)
    return found if isinstance(found, Refuses) or found == [0, 0] else [inputs["layers"], room]


def _stay(inputs: Inputs) -> Value:
    found = _fit()(inputs)
    return found if isinstance(found, Refuses) else [inputs["layers"] - found[0], found[1]]
