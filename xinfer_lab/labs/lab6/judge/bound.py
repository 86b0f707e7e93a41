"""Lab 6: what binds a pass, and what wrong ideas would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge, WrongModel, first_difference

__all__ = ["BOUND"]

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
        WrongModel(
            "Times added up",
            "The three run side by side: the longest sets the pace, not their sum.",
            _sum,
            rule="side_by_side",
        ),
        WrongModel(
            "Whole seconds",
            "Times are seconds with all their decimals: divide with /, and round nothing.",
            lambda inputs: _longest({key: int(time) for key, time in _times(inputs).items()}),
            rule="seconds",
        ),
        WrongModel(
            "Whole seconds of copying",
            "Bytes over bytes a second are no whole number: divide with /, and round nothing.",
            lambda inputs: _longest({k: t if k == "computing" else int(t) for k, t in _times(inputs).items()}),
            rule="seconds",
        ),
        WrongModel("The shortest binds", "A pass is over when its slowest part is.", _shortest, rule="longest"),
        WrongModel(
            "The host's copying is left out",
            "Staged layers are first copied by the host; where that is slower than the link, it binds.",
            _without("memcpy"),
            rule="memcpy",
        ),
        WrongModel(
            "Computing is left out",
            "A pass cannot be shorter than its computing.",
            _without("computing"),
            rule="computing",
        ),
        WrongModel(
            "The link is left out",
            "Whatever does not stay has to cross the link in every pass.",
            _without("link"),
            rule="link",
        ),
        WrongModel(
            "Bandwidth over bytes", "Seconds are bytes divided by bytes a second.", _upside_down, rule="bytes_over_rate"
        ),
        WrongModel(
            "Copying and sending in turns",
            "The host fills one half of the ring while the other is sent: the slower of the two counts.",
            _serial_copies,
            rule="side_by_side",
        ),
        WrongModel(
            "The host's copying in place of the link",
            "Staged bytes are copied by the host and then cross the link all the same.",
            _instead,
            rule="link",
        ),
        WrongModel(
            "A tie goes to the last", "On a tie the first of computing, link and memcpy is named.", _last, rule="tie"
        ),
    ),
    besides=("dict", "no_memcpy"),
)
