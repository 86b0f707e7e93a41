"""Lab 3: where a layer goes, how long a pass takes, how many tokens hide a copy; and what wrong ideas would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, WrongModel, equal, first_difference

__all__ = ["LAYER_OF", "PASS_TIMES", "SLOT_OF", "TOKENS_TO_HIDE"]

Inputs = Mapping[str, Value]
Model = Callable[[Inputs], Value]


def _place(name: str) -> Callable[[Case], str]:
    arguments = {"layer_of": ("step", "layers"), "slot_of": ("step", "layers", "pool")}[name]
    return lambda case: f"{name}({', '.join(f'{key}={case.inputs[key]}' for key in arguments)})"


LAYER_OF = Judge(
    truth=lambda i: i["step"] % i["layers"],
    passed="The layer of any step, in any pass.",
    noun="layer",
    call=_place("layer_of"),
    wrong=(
        WrongModel(
            "The step is taken for the layer",
            "Steps run on over all passes; layers begin again at 0.",
            lambda i: i["step"],
            rule="again",
        ),
        WrongModel(
            "The pass, not the layer",
            "// gives the number of the pass; the layer is what is left over.",
            lambda i: i["step"] // i["layers"],
            rule="again",
        ),
        WrongModel(
            "Counted from 1", "Layers are numbered from 0.", lambda i: i["step"] % i["layers"] + 1, rule="from_0"
        ),
        WrongModel("One step late", "Step 0 computes layer 0.", lambda i: (i["step"] - 1) % i["layers"], rule="from_0"),
        WrongModel(
            "One step early", "Step 0 computes layer 0.", lambda i: (i["step"] + 1) % i["layers"], rule="from_0"
        ),
        WrongModel(
            "A pass is one layer too long",
            "A pass has L layers, 0 to L - 1.",
            lambda i: i["step"] % (i["layers"] + 1),
            rule="again",
        ),
        WrongModel(
            "The last layer stays",
            "After layer L - 1 comes layer 0 of the next pass.",
            lambda i: min(i["step"], i["layers"] - 1),
            rule="again",
        ),
        WrongModel(
            "Back and forth",
            "Every pass runs from layer 0 to layer L - 1.",
            lambda i: _back(i["step"], i["layers"]),
            rule="again",
        ),
    ),
)


def _back(step: int, layers: int) -> int:
    layer = step % layers
    return layer if step // layers % 2 == 0 else layers - 1 - layer


BY_LAYER = (
    "Slot by layer number",
    "layer % N breaks at the end of a pass, unless N divides L: the last layers and the first ones of the next pass "
    "meet in one slot. Steps run on over all passes; layers do not.",
)

SLOT_OF = Judge(
    truth=lambda i: i["step"] % i["pool"],
    passed="Slots taken in turn, across the end of every pass.",
    noun="slot",
    call=_place("slot_of"),
    wrong=(
        WrongModel(*BY_LAYER, lambda i: i["step"] % i["layers"] % i["pool"], rule="over_all_passes"),
        WrongModel(
            "The layer is taken for the slot",
            "There are only N slots, 0 to N - 1.",
            lambda i: i["step"] % i["layers"],
            rule="in_turn",
        ),
        WrongModel(
            "The step is taken for the slot", "There are only N slots, 0 to N - 1.", lambda i: i["step"], rule="in_turn"
        ),
        WrongModel("Counted from 1", "Slots are numbered from 0.", lambda i: i["step"] % i["pool"] + 1, rule="from_0"),
        WrongModel(
            "Blocks, not turns",
            "Neighbouring steps use neighbouring slots, or nothing could be copied meanwhile.",
            lambda i: i["step"] // i["pool"] % i["pool"],
            rule="in_turn",
        ),
        WrongModel(
            "Two slots, whatever the pool",
            "The ring goes through all N slots.",
            lambda i: i["step"] % 2,
            rule="in_turn",
        ),
        WrongModel(
            "One slot too many", "There are N slots, 0 to N - 1.", lambda i: i["step"] % (i["pool"] + 1), rule="in_turn"
        ),
        WrongModel(
            "One slot is left out", "All N slots are used.", lambda i: i["step"] % (i["pool"] - 1), rule="in_turn"
        ),
        WrongModel(
            "Shifted by one with each pass",
            "A step's slot does not depend on the pass that it is in.",
            lambda i: (i["step"] % i["layers"] + i["step"] // i["layers"]) % i["pool"],
            rule="over_all_passes",
        ),
        WrongModel("Backwards", "Step 0 uses slot 0, step 1 slot 1.", lambda i: -i["step"] % i["pool"], rule="in_turn"),
        WrongModel(
            "Only one slot",
            "With one slot nothing can be copied while a layer is computed.",
            lambda i: 0,
            rule="in_turn",
        ),
        WrongModel(
            "The slot of the next step", "Step 0 uses slot 0.", lambda i: (i["step"] + 1) % i["pool"], rule="from_0"
        ),
    ),
)


def _passes(
    streamed: Callable[[int, int, int], Value] = lambda n, t, c: t + (n - 1) * max(t, c) + c,
    serial: Callable[[int, int, int], Value] = lambda n, t, c: n * (t + c),
    resident: Callable[[int, int, int], Value] = lambda n, t, c: n * c,
) -> Model:
    def times(inputs: Inputs) -> Value:
        figures = (inputs["layers"], inputs["t_trans"], inputs["t_comp"])
        return {"resident": resident(*figures), "serial": serial(*figures), "streamed": streamed(*figures)}

    return times


def _close(expected: Value, got: Value, noun: str) -> Difference | None:
    """Equal up to rounding: whole numbers and decimals are both times."""
    if isinstance(got, dict) and set(got) == set(expected):
        for key, right in expected.items():
            given = got[key]
            number = type(given) in (int, float)
            if not number or abs(given - right) > 1e-9 * abs(right):
                return Difference(f"[{key!r}]", shown(right), shown(given), f"The {key} time is another one.")
        return None
    found = first_difference(expected, got)
    why = found[3] if found else ""
    return Difference(
        "", shown(expected), shown(got), f"The {noun} is not of the form that was asked for{': ' + why if why else ''}."
    )


PASS_TIMES = Judge(
    truth=_passes(),
    passed="Resident, serial and streamed: the pipeline's fill, and at most 2x.",
    noun="dict of times",
    call=lambda case: "pass_times(layers={layers}, t_trans={t_trans}, t_comp={t_comp})".format(**case.inputs),
    compare=_close,
    wrong=(
        WrongModel(
            "No fill",
            "Nothing can be computed before the first layer has arrived.",
            _passes(lambda n, t, c: n * max(t, c)),
            rule="fill",
        ),
        WrongModel(
            "No drain",
            "After the last copy the last layer still has to be computed.",
            _passes(lambda n, t, c: t + (n - 1) * max(t, c)),
            rule="drain",
        ),
        WrongModel(
            "One stage too many",
            "Between the first copy and the last layer's computing lie L - 1 stages.",
            _passes(lambda n, t, c: t + n * max(t, c) + c),
            rule="stages",
        ),
        WrongModel(
            "Copies are always hidden",
            "When a copy takes longer than computing, the copies set the pace.",
            _passes(lambda n, t, c: t + n * c),
            rule="slower_sets_the_pace",
        ),
        WrongModel(
            "Copies always set the pace",
            "When computing takes longer than a copy, computing sets the pace.",
            _passes(lambda n, t, c: n * t + c),
            rule="slower_sets_the_pace",
        ),
        WrongModel(
            "Streaming as long as serial",
            "Copies and computing run at the same time.",
            _passes(lambda n, t, c: n * (t + c)),
            rule="beside",
        ),
        WrongModel(
            "Streaming as fast as resident",
            "The first layer's copy cannot be hidden: nothing is computed yet.",
            _passes(lambda n, t, c: n * c),
            rule="fill",
        ),
        WrongModel(
            "The shorter time sets the pace",
            "A stage is over when both its copy and its computing are.",
            _passes(lambda n, t, c: t + (n - 1) * min(t, c) + c),
            rule="slower_sets_the_pace",
        ),
        WrongModel(
            "Half of serial",
            "At most 2x, and only where both times are equal; not always.",
            _passes(lambda n, t, c: n * (t + c) / 2),
            rule="beside",
        ),
        WrongModel(
            "Serial already overlaps",
            "Serial copies, then computes, layer by layer.",
            _passes(serial=lambda n, t, c: n * max(t, c)),
            rule="serial",
        ),
        WrongModel(
            "Serial copies once", "Each layer is copied.", _passes(serial=lambda n, t, c: t + n * c), rule="serial"
        ),
        WrongModel(
            "Resident copies too",
            "Resident weights are there already.",
            _passes(resident=lambda n, t, c: t + n * c),
            rule="resident",
        ),
        WrongModel(
            "One layer only",
            "A pass has L layers.",
            _passes(lambda n, t, c: t + c, lambda n, t, c: t + c, lambda n, t, c: c),
            rule="all_layers",
        ),
    ),
)


def _tokens(
    *,
    latency: bool = True,
    launch: bool = True,
    strict: bool = False,
    strict_read: bool = False,
    floor: bool = False,
    read: bool = True,
    link: str = "link_bandwidth",
    nbytes: Callable[[Inputs], int] = lambda i: i["layer_bytes"],
    flops: Callable[[Inputs], int] = lambda i: i["flops_per_token"],
    least: int = 1,
) -> Model:
    """By exact fractions, so that no rounding decides."""

    def smallest(inputs: Inputs) -> Value:
        gpu = {
            key: Fraction(value)
            for key, value in inputs["gpu"].items()
            if isinstance(value, (int, float)) and value != float("inf")
        }
        if link not in gpu:
            return least
        start = gpu["launch_time"] if launch else Fraction(0)
        transfer = Fraction(nbytes(inputs)) / gpu[link] + (gpu["link_latency"] if latency else 0)
        needed = (transfer - start) * gpu["flops"] / flops(inputs)
        reading = inputs["layer_bytes"] / gpu["memory_bandwidth"] if read and "memory_bandwidth" in gpu else Fraction(0)
        read_hides = reading + start > transfer if strict_read else reading + start >= transfer
        if needed <= 0 or read_hides:
            return least
        whole = needed.numerator // needed.denominator
        if floor:
            return max(least, whole)
        return max(least, whole + 1 if strict or needed != whole else whole)

    return smallest


def _hiding_call(case: Case) -> str:
    inputs = case.inputs
    return f"tokens_to_hide({inputs['layer_bytes']:,}, {inputs['flops_per_token']:,}, gpu): {case.label}"


def _whole(expected: Value, got: Value, noun: str) -> Difference | None:
    found = equal(expected, got, noun)
    if found is None or type(got) is not float:
        return found
    return replace(found, hint="A whole number was asked for: round up with math.ceil.")


TIE = ("A tie is not taken for hidden", "Hidden means T_trans <= T_comp: equal will do.")

TOKENS_TO_HIDE = Judge(
    truth=_tokens(),
    passed="The fewest tokens that hide a layer's copy, latency and launch included.",
    noun="number of tokens",
    call=_hiding_call,
    compare=_whole,
    wrong=(
        WrongModel(*TIE, _tokens(strict=True, strict_read=True), rule="equal"),
        WrongModel(*TIE, _tokens(strict=True), rule="equal"),
        WrongModel(*TIE, _tokens(strict_read=True), rule="equal"),
        WrongModel(
            "Rounded down",
            "One token fewer than needed leaves a part of the copy in sight: round up.",
            _tokens(floor=True),
            rule="smallest",
        ),
        WrongModel(
            "Latency and launch are left out",
            "T_trans has the link's latency in it, T_comp the launch.",
            _tokens(latency=False, launch=False),
        ),
        WrongModel(
            "The latency is left out",
            "A copy takes link_latency + bytes / link_bandwidth.",
            _tokens(latency=False),
            rule="latency",
        ),
        WrongModel(
            "The launch is left out", "A kernel takes launch_time on top.", _tokens(launch=False), rule="launch"
        ),
        WrongModel(
            "The wrong bandwidth",
            "A copy to the GPU crosses the link; memory_bandwidth is the GPU's own memory.",
            _tokens(link="memory_bandwidth", latency=True),
            rule="link",
        ),
        WrongModel(
            "Two bytes a weight are taken for granted",
            "layer_bytes says how much is copied; in float32 it is 4 bytes a weight.",
            _tokens(nbytes=lambda i: i["flops_per_token"]),
            rule="layer_bytes",
        ),
        WrongModel(
            "One FLOP a byte is taken for granted",
            "flops_per_token says what a token costs.",
            _tokens(flops=lambda i: i["layer_bytes"]),
            rule="flops",
        ),
        WrongModel(
            "Two FLOPs a FLOP",
            "flops_per_token has the factor 2 in it already.",
            _tokens(flops=lambda i: 2 * i["flops_per_token"]),
            rule="flops",
        ),
        WrongModel(
            "Bits, not bytes",
            "Bandwidths are in bytes a second.",
            _tokens(nbytes=lambda i: 8 * i["layer_bytes"]),
            rule="layer_bytes",
        ),
        WrongModel("No token at all", "A pass has at least one token.", _tokens(least=0), rule="at_least_1"),
        WrongModel(
            "Reading the weights is left out",
            "A kernel also has to read the layer once: with few tokens that may take longer.",
            _tokens(read=False),
            rule="reading",
        ),
    ),
)
