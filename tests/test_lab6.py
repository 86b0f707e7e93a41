"""Lab 6: the race is judged from streams alone, its bound agrees with the package, and the codec's rules hold."""

from __future__ import annotations

import copy
import json
import math
import re
import struct
from datetime import date
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answer_bank import given_and_answers
from tests.notebooks import SOLUTIONS, read, text
from xinfer_lab.grading import examine, find_piece, pieces_of
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import Case, cases_from_data, cases_to_data
from xinfer_lab.labs.lab6.given.race import race, this_week
from xinfer_lab.labs.lab6.judge.bounds import plans_of, time_of
from xinfer_lab.labs.lab6.judge.form import fewest_escapes, patterns, read_form
from xinfer_lab.labs.lab6.judge.race_case import RaceCase, best_of
from xinfer_lab.labs.lab6.judge.race_rules import score_of
from xinfer_lab.labs.lab6.judge.stay import gaps
from xinfer_lab.labs.lab6.judge.uneven import bytes_held, paper_bound, paper_time
from xinfer_lab.labs.lab6.pieces import plan_of
from xinfer_lab.labs.lab6.planned_case import PlannedCase, needs_of
from xinfer_lab.labs.lab6.race_line import RaceLine, find_lines

(SOURCE,) = (path for path in SOLUTIONS if path.parent.name.startswith("lab6"))


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the instructor's notebook defines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for place, source in given_and_answers("lab6"):
        exec(compile(source, place, "exec"), names)
    return names


@pytest.fixture(scope="module")
def raced(answers: dict[str, Any]) -> tuple[list[Case], dict[str, Any]]:
    """One race of the instructor's plan: cases, and the recording."""
    piece = find_piece("lab6.gate")
    cases = piece.draw(5)
    return cases, json.loads(json.dumps(piece.record(answers["plan"], cases)))


def run_by(cases: list[Case]) -> list[Case]:
    """The ``cases`` for which a model is run; for the others the planner is asked alone."""
    return [case for case in cases if "layers" in case.inputs]


def verified(cases: list[Case], data: Any) -> Any:
    return find_piece("lab6.gate").verify(cases_from_data(cases_to_data(cases)), data)


def test_every_piece_of_the_lab_has_a_judge() -> None:
    for piece in pieces_of("lab6"):
        assert judge_of(piece.name).passed


def test_one_seed_draws_the_same_race_for_each_of_its_pieces() -> None:
    drawn = [cases_to_data(find_piece(f"lab6.{name}").draw(3)) for name in ("gate", "beat_40", "beat_90")]
    assert drawn[0] == drawn[1] == drawn[2]
    assert {case.inputs["draw"] for case in find_piece("lab6.gate").draw(3)} == {3}


def test_a_race_has_cases_that_each_ask_for_another_decision() -> None:
    for seed in (0, 11):
        best = [best_of(RaceCase.read(case.inputs)) for case in run_by(find_piece("lab6.gate").draw(seed))]
        assert {one.form for one in best} == {"plain", "coded"}
        assert {one.host for one in best} == {"pinned", "staged"}
        assert {one.binds for one in best} == {"computing", "link", "memcpy"}
        assert min(one.streamed for one in best) == 0


def test_the_instructors_plan_comes_within_a_tenth_of_the_bound(raced: tuple[list[Case], Any]) -> None:
    cases, data = raced
    report = verified(cases, data)
    assert report.passed, str(report)
    (line,) = find_lines(report.headline)
    run = re.search(r"Bound over time: ([\d., ]+)\.\n", report.headline)
    assert run and min(float(score) for score in run[1].split(", ")) > 0.97
    # The races on paper leave room for those who go on.
    assert line.seed == 5 and 0.8 < line.score < 0.93


def test_the_planner_is_told_what_the_package_plans_with() -> None:
    from xinfer_lab.residency.plan import Shape, make_plan

    for case in run_by(find_piece("lab6.gate").draw(1)):
        figures = {name: value for name, value in case.inputs.items() if name not in ("needs", "draw")}
        small = PlannedCase.of(figures)
        plan = make_plan(small.config, Shape(small.context, small.batch, small.prompt), small.memory)
        plain = needs_of(small)["forms"]["plain"]
        # The planner of the package asks for the longest pass that a context allows, the case for its own passes.
        assert plain["always"] <= sum(plan.always.values()) <= 1.02 * plain["always"]
        assert plan.layer_bytes == plain["layer_bytes"]


def test_a_line_does_not_depend_on_source_lines_or_on_what_the_host_read(raced: tuple[list[Case], Any]) -> None:
    cases, data = raced
    moved = copy.deepcopy(data)
    for outcome in moved["outcomes"]:
        for record in outcome["stream"]["records"]:
            record["where"] = "xinfer_lab/elsewhere.py:7"
            if "digest" in record:
                record["digest"] = ""
    assert find_lines(verified(cases, moved).headline) == find_lines(verified(cases, data).headline)


def drop(records: list[dict[str, Any]], wanted: Any) -> None:
    place = next(i for i, record in enumerate(records) if wanted(record))
    del records[place]


@pytest.mark.parametrize(
    ("op", "words"), [("wait", "race"), ("dispatch", "not complete"), ("allocate", "cannot be run")]
)
def test_a_recording_that_leaves_something_out_is_not_believed(
    raced: tuple[list[Case], Any], op: str, words: str
) -> None:
    cases, data = raced
    forged = copy.deepcopy(data)
    kind = {"dispatch": "decoder_layer"}
    for outcome in forged["outcomes"]:
        records = outcome["stream"]["records"]
        if any(record["op"] == op for record in records):
            drop(records, lambda r: r["op"] == op and r.get("kernel", "") == kind.get(op, r.get("kernel", "")))
    report = verified(cases, forged)
    assert not report.passed and words in report.headline.lower()


def test_other_weights_under_the_right_names_are_found_by_parity(raced: tuple[list[Case], Any]) -> None:
    cases, data = raced
    forged = copy.deepcopy(data)
    for outcome in forged["outcomes"]:
        for record in outcome["stream"]["records"]:
            if record["op"] == "host_write" and record["source"]["name"].startswith("model.layers.1."):
                record["source"]["name"] = record["source"]["name"].replace("layers.1.", "layers.0.")
    report = verified(cases, forged)
    assert not report.passed and "differ" in report.headline


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"form": "zip"}, "the form 'zip'"),
        ({"host": "pageable"}, "host tier"),
        ({"streamed": 3}, "list of layer numbers"),
        ({"streamed": [1, 0]}, "growing"),
        ({"streamed": [0, 9]}, "0 to 4"),
        ({"slots": 0}, "at least 1"),
        ({"streamed": [], "slots": 2}, "0 where none streams"),
        ({"pool": 2}, "plan returns"),
    ],
)
def test_what_is_no_plan_is_told_what_a_plan_is(change: dict[str, Any], words: str) -> None:
    needs = {"layers": 5, "forms": {"plain": {}}}
    right = {"form": "plain", "streamed": [0, 2, 3], "slots": 2, "host": "pinned"}
    assert plan_of(right, needs)[0].streamed == (0, 2, 3)
    with pytest.raises(ValueError, match=re.escape(words)):
        plan_of({**right, **change}, needs)


def test_a_plan_that_pins_too_much_is_told_so_even_if_it_would_be_fast(answers: dict[str, Any]) -> None:
    own = answers["plan"]  # alone: a check looks at all that an answer refers to

    def plan(needs: dict[str, Any]) -> Any:
        return own({**needs, "pinned": 10**12})

    report = examine("lab6.gate", plan)
    assert not report.passed and "pinned" in report.headline
    assert report.misconception and report.misconception.name == "A pinned copy that does not fit"


def test_a_race_gives_a_line_and_a_plan_that_does_not_run_its_report(answers: dict[str, Any]) -> None:
    *told, line = race(answers["plan"], 0).splitlines()
    assert find_lines(line)[0].seed == 0 and str(find_lines(line)[0]) == line
    assert told[0].startswith("Bound over time: ") and told[1].startswith("On paper: uneven layers 0.")
    assert "not yet" in race(lambda needs: None, 0)


def test_a_week_has_one_seed() -> None:
    assert this_week(date(2026, 11, 30)) == this_week(date(2026, 12, 6)) == 202649
    assert this_week(date(2027, 1, 3)) == 202653


def asked(seed: int) -> list[Case]:
    return [case for case in find_piece("lab6.gate").draw(seed) if "layers" not in case.inputs]


def on_paper(seed: int) -> list[dict[str, Any]]:
    return [case.inputs["needs"] for case in asked(seed) if "uneven" in case.inputs["needs"]]


def test_the_notebook_counts_the_needs_that_no_model_is_run_for() -> None:
    cells = {cell["id"]: text(cell) for cell in read(SOURCE)["cells"]}
    assert f"{len(asked(0))} sets of `needs`" in cells["gate-text"]
    assert f"in {len(asked(0)) - len(on_paper(0))} of the others" in cells["gate-text"]
    assert "uneven" in cells["race-text"]


def test_one_slot_fails_the_lowest_check_whatever_is_drawn(answers: dict[str, Any]) -> None:
    for seed in range(4):
        needs = [case.inputs["needs"] for case in asked(seed) if "uneven" not in case.inputs["needs"]]
        assert any(in_turns(answers, one) * 0.4 > best_bound(one) for one in needs)


def best_bound(needs: dict[str, Any]) -> float:
    return min(plan.bound for plan in plans_of(needs))


def in_turns(answers: dict[str, Any], needs: dict[str, Any]) -> float:
    """Seconds of the best plan with one slot, which has room for a layer more."""
    found = []
    for best in plans_of(needs):
        fewer = max(0, best.streamed - 1)
        found.append(sum(time_of(needs, best.form, best.host, fewer).values()))
    return min(found)


def test_on_paper_more_can_be_had_than_the_last_hint_gives_and_never_more_than_the_bound(
    answers: dict[str, Any],
) -> None:
    for seed in range(3):
        hint, better = [], []
        for needs in on_paper(seed):
            plan = answers["plan"](needs)
            assert bytes_held(needs, plan["streamed"], plan["slots"]) <= needs["budget"]
            bound = paper_bound(needs)
            hint.append(bound / paper_time(needs, plan["streamed"], plan["slots"], plan["host"]))
            better.append(max(bound / paper_time(needs, *plan, "pinned") for plan in by_their_sizes(needs)))
        assert max(better) <= 1.0 and all(few <= more for few, more in zip(hint, better, strict=True))
        assert math.prod(hint) < 0.85 * math.prod(better)


def by_their_sizes(needs: dict[str, Any]) -> list[tuple[list[int], int]]:
    """Plans that count each layer's own bytes, with two slots or more, and leave more or less room for the cache."""
    each, found = needs["uneven"]["layer_bytes"], []
    for slots in (2, 3, 4, 6):
        for room in range(0, 13, 3):
            for count in range(1, len(each) + 1):
                places = [place * len(each) // count for place in range(count)]
                if bytes_held(needs, places, slots) + room * needs["uneven"]["grows"] <= needs["budget"]:
                    found.append((places, slots))
                    break
    return found


def test_what_a_grown_cache_displaces_and_one_slot_cost_time_on_paper() -> None:
    needs = on_paper(0)[1]
    layers = needs["layers"]
    everything, slots = list(range(layers)), 2
    free = {**needs, "budget": 10**15}
    assert paper_time(free, everything, slots, "pinned") < paper_time(needs, everything, 40, "pinned")
    assert paper_time(free, everything, 2, "pinned") < paper_time(free, everything, 1, "pinned")
    assert paper_time(free, everything, 2, "pinned") < paper_time(free, everything, 2, "staged")
    assert paper_time(free, [], 0, "pinned") == pytest.approx(sum(needs["uneven"]["t_layer"]))


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(0, 2**64 - 1))
def test_a_line_is_read_back_from_any_text(seed: int, score: float, digest: int) -> None:
    line = RaceLine(seed, round(score, 4), f"{digest:016x}")
    assert find_lines(f"Ada: {line}, look!") == [line]
    assert find_lines(str(line)[:-1]) == []


@settings(max_examples=200)
@given(st.integers(1, 200), st.data())
def test_the_rule_of_even_gaps_is_kept_by_the_packages_own_spread(layers: int, data: st.DataObject) -> None:
    from xinfer_lab.residency.planned import spread

    streamed = data.draw(st.integers(0, layers))
    judge = judge_of("lab6.spread")
    assert judge.compare({"layers": layers, "streamed": streamed}, list(spread(layers, streamed)), "list") is None
    found = gaps(list(spread(layers, streamed)), layers)
    assert sum(found) == (layers if streamed else 0)


def test_beladys_choice_misses_least_of_all_that_can_be_given_up(answers: dict[str, Any]) -> None:
    """By trying every choice at every step, for small scans."""
    layers, room, steps = 4, 2, 9

    def fewest(held: frozenset[int], step: int) -> int:
        if step == steps:
            return 0
        layer = step % layers
        if layer in held:
            return fewest(held, step + 1)
        return 1 + min(fewest(held - {gone} | {layer}, step + 1) for gone in held)

    start = frozenset({0, 1})
    misses, held = 0, set(start)
    for step in range(steps):
        layer = step % layers
        if layer not in held:
            misses += 1
            held.remove(answers["victim"](sorted(held), layer, layers))
            held.add(layer)
    assert misses == fewest(start, 0) and len(held) == room


def as_tensor(bits: list[int]) -> torch.Tensor:
    return torch.tensor(bits, dtype=torch.int32)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=300))
def test_the_codec_brings_back_any_patterns_within_its_bound(answers: dict[str, Any], bits: list[int]) -> None:
    form = answers["encode"](as_tensor(bits))
    assert read_form(form, len(bits)) == tuple(bits)
    assert answers["decode"](form).tolist() == bits
    size = 8 * (len(form["sign_mantissa"]) + len(form["codes"]) + len(form["escapes"]))
    assert size <= 12 * len(bits) + 8 * fewest_escapes(bits) + 4


def test_the_codec_brings_back_every_pattern_there_is(answers: dict[str, Any]) -> None:
    bits = list(range(2**16))
    Random(1).shuffle(bits)
    assert answers["decode"](answers["encode"](as_tensor(bits))).tolist() == bits


def test_every_draw_has_nan_infinities_subnormals_zeros_and_all_patterns() -> None:
    for seed in range(5):
        cases = find_piece("lab6.encode_escapes").draw(seed)
        seen = [set(patterns(case.inputs["bits"])) for case in cases]
        assert any(len(one) == 2**16 for one in seen)
        assert any({0x0000, 0x8000, 0x0001, 0x7F80, 0xFF80, 0x7FC0} <= one for one in seen if len(one) < 2000)
        assert all(fewest_escapes(patterns(case.inputs["bits"])) == 0 for case in find_piece("lab6.encode").draw(seed))


def test_a_decoders_forms_are_right_and_not_always_of_the_best_window() -> None:
    poorer = 0
    for seed in range(6):
        for name in ("decode", "decode_escapes"):
            coded = find_piece(f"lab6.{name}").draw(seed)
            plain = find_piece(f"lab6.en{name[2:]}")
            assert len(coded) == len(plain.draw(seed))
            for case in coded:
                form = case.inputs["coded"]
                bits = read_form(form, form["count"])
                poorer += len(form["escapes"]) > fewest_escapes(bits)
    assert poorer > 0


def test_a_copy_of_the_weights_does_not_pass(answers: dict[str, Any]) -> None:
    def encode(bits: torch.Tensor) -> dict[str, Any]:
        exponents = (bits >> 7 & 255).tolist()
        count = len(exponents)
        signs = bytes((bits >> 8 & 0x80 | bits & 0x7F).tolist())
        return {
            "base": 0, "count": count, "sign_mantissa": signs, "codes": b"\xff" * math.ceil(count / 2),
            "escapes": bytes(exponents),
        }  # fmt: skip

    report = examine("lab6.encode_escapes", encode)
    assert not report.passed and "larger than it has to be" in report.headline


def test_bits_that_are_no_patterns_are_told_their_range() -> None:
    def decode(coded: dict[str, Any]) -> torch.Tensor:
        return torch.full((coded["count"],), 70_000)

    report = examine("lab6.decode", decode)
    assert not report.passed and "70,000" in str(report)


def test_the_tables_of_the_notebook_say_what_its_pictures_show() -> None:
    from tools.lab6_pictures import exponent_shares, waterfall_seconds

    cells = {cell["id"]: text(cell) for cell in read(SOURCE)["cells"]}
    seconds = list(waterfall_seconds().values())
    for value, before in zip(seconds, [None, *seconds], strict=False):
        assert f"{value:.2f} s" in cells["waterfall"]
        assert before is None or f"{before / value:.2f}" in cells["waterfall"]
    total = seconds[0] / seconds[-1]
    assert f"{total:.2f}, which is {1 - 1 / total:.0%} less" in cells["waterfall"]
    for exponent, share in exponent_shares().items():
        assert exponent < 117 or exponent > 122 or f"{share:.1%}" in cells["format-text"]


def test_a_score_is_never_more_than_1_and_bound_over_time_else(raced: tuple[list[Case], Any]) -> None:
    from xinfer_lab.device.stream import CommandStream
    from xinfer_lab.grading.programs.evidence import Evidence

    cases, data = raced
    for case, outcome in zip(run_by(cases), data["outcomes"], strict=False):
        stream = CommandStream.from_dict(outcome["stream"])
        assert 0.9 < score_of(Evidence(RaceCase.read(case.inputs), stream)) <= 1


def test_the_wrong_ideas_of_a_case_carry_its_bits() -> None:
    data = struct.pack("<3H", 1, 2, 3)
    assert patterns(data) == (1, 2, 3)
