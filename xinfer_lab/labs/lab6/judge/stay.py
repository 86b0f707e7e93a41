"""Lab 6: which layer to give up, which layers stream; and what wrong ideas would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, WrongModel, equal

__all__ = ["SPREAD", "VICTIM", "gaps"]

Inputs = Mapping[str, Value]


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
            rule="farthest",
        ),
        WrongModel(
            "The highest number",
            "Behind the last layer comes layer 0: count around the end.",
            lambda i: max(i["held"]),
            rule="circle",
        ),
        WrongModel(
            "The lowest number",
            "Layer 0 may be the next one: count around the end.",
            lambda i: min(i["held"]),
            rule="circle",
        ),
        WrongModel(
            "First in, first out",
            "When it came does not matter; when it is needed next does.",
            lambda i: i["held"][0],
            rule="farthest",
        ),
        WrongModel("Last in the list", "The order of the list says nothing.", lambda i: i["held"][-1], rule="farthest"),
        WrongModel(
            "The nearest number, around the end either way",
            "The scan goes one way only: a layer just passed is needed last, one just ahead first.",
            lambda i: min(i["held"], key=lambda o: min(_distance(i)(o), -_distance(i)(o) % i["layers"])),
            rule="one_way",
        ),
        WrongModel(
            "The farthest number, around the end either way",
            "The scan goes one way only: a layer just passed is the farthest of all.",
            lambda i: max(i["held"], key=lambda o: min(_distance(i)(o), -_distance(i)(o) % i["layers"])),
            rule="one_way",
        ),
        WrongModel(
            "The farthest number, without the end",
            "Behind the last layer comes layer 0: the distance is counted modulo the number of layers.",
            lambda i: max(i["held"], key=lambda o: abs(o - i["layer"])),
            rule="circle",
        ),
        WrongModel(
            "A layer that is not held",
            "Only a layer that is held can be given up.",
            lambda i: (
                (i["layer"] - 1) % i["layers"]
                if (i["layer"] - 1) % i["layers"] not in i["held"]
                else max(i["held"], key=_distance(i))
            ),
            rule="held",
        ),
        WrongModel(
            "The layer that is needed now", "That one comes in; another has to go.", lambda i: i["layer"], rule="held"
        ),
    ),
    besides=("keeps_inputs",),
)


def gaps(chosen: list[int], layers: int) -> list[int]:
    """Layers from each streamed one to the next, around the end of the pass."""
    ahead = [*chosen[1:], chosen[0] + layers] if chosen else []
    return [after - before for before, after in zip(chosen, ahead, strict=True)]


def _spread(expected: Value, got: Value, noun: str) -> Difference | None:
    if isinstance(expected, list):
        # What a wrong idea would answer, held against an answer.
        return equal(expected, got, noun)
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


def _answers(pick: Callable[[int, int], list[int]]) -> Callable[[Inputs], Value]:
    return lambda inputs: pick(inputs["layers"], inputs["streamed"])


def _right(n: int, k: int) -> list[int]:
    return [place * n // k for place in range(k)]


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
            _answers(lambda n, k: list(range(k))),
            rule="even",
        ),
        WrongModel(
            "All at the end",
            "While the layers that stay are computed the link stands still: two slots hold no more than two layers.",
            _answers(lambda n, k: list(range(n - k, n))),
            rule="even",
        ),
        WrongModel(
            "A step that is rounded down",
            "A whole step leaves a long gap behind the last one, around the end of the pass; round each place, not the "
            "step.",
            _answers(lambda n, k: [j * (n // k) for j in range(k)] if k else []),
            rule="even",
        ),
        WrongModel(
            "From the first to the last layer",
            "Layer 0 follows the last layer: both ends together are one gap of 1.",
            _answers(lambda n, k: [round(j * (n - 1) / (k - 1)) for j in range(k)] if k > 1 else [0] * k),
            rule="around",
        ),
        WrongModel(
            "Those that stay are spread",
            "The answer is the layers that stream, not those that stay.",
            _answers(lambda n, k: [j * n // (n - k) for j in range(n - k)] if n > k else []),
            rule="count",
        ),
        WrongModel(
            "Counted from 1",
            "Layers are counted from 0 to layers - 1.",
            _answers(lambda n, k: [place + 1 for place in _right(n, k)]),
            rule="from_0",
        ),
        WrongModel(
            "The last one first",
            "The list grows: each number is larger than the one before it.",
            _answers(lambda n, k: _right(n, k)[::-1]),
            rule="growing",
        ),
        WrongModel(
            "One streams in any case",
            "Where none streams, the list is empty.",
            _answers(lambda n, k: _right(n, max(1, k))),
            rule="none",
        ),
    ),
)
