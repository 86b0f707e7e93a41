"""Lab 5: what a page pool made of parts submits is judged from its stream, whatever was recorded beside it."""

from __future__ import annotations

import copy
import inspect
import json
import linecache
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.device.records import Copy, Span, Wait
from xinfer_lab.grading import examine, find_piece
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import Case, cases_from_data, cases_to_data
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.grading.programs.verify_program import read_evidence
from xinfer_lab.labs.lab5 import mixture_draw, script_draw
from xinfer_lab.labs.lab5 import script as scripts
from xinfer_lab.labs.lab5.given.parts_pool import PartsPool
from xinfer_lab.labs.lab5.given.single_pages import SinglePages
from xinfer_lab.labs.lab5.judge.gate import hit_rates
from xinfer_lab.labs.lab5.judge.page_order import needed_order, too_much_order
from xinfer_lab.labs.lab5.mixture_case import MixtureCase, resident_run, run_mixture
from xinfer_lab.labs.lab5.mixture_draw import mixtures
from xinfer_lab.labs.lab5.page_shape import PageShape
from xinfer_lab.labs.lab5.pages import pages_of
from xinfer_lab.labs.lab5.parts import PARTS, neighbours
from xinfer_lab.labs.lab5.parts_trial import try_parts
from xinfer_lab.paging.errors import HostPoolFull, PageError, PoolFull
from xinfer_lab.residency.parity import compare_logits

PIECES = {"prefetch": "prefetch", "acquire": "acquire", "release": "release", "evict": "evict", "write_back": "evict"}
SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")


def fresh(**changes: tuple[str, str]) -> dict[str, Any]:
    """The given parts, made anew; of those named in ``changes`` one text is replaced by another."""
    made: dict[str, Any] = {}
    for module, name in PARTS.items():
        source = inspect.getsource(inspect.getmodule(neighbours("")[name]))  # type: ignore[arg-type]
        if module in changes:
            old, new = changes[module]
            assert old in source
            source = source.replace(old, new)
        names: dict[str, Any] = {"__name__": "__main__"}
        place = f"<{module} {len(linecache.cache)}>"
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        exec(compile(source, place, "exec"), names)
        made[name] = names[name]
    return made


def recorded(piece: str, answer: Any, seed: int = 0) -> tuple[list[Case], dict[str, Any]]:
    asked = find_piece(f"lab5.{piece}")
    cases = asked.draw(seed)
    return cases, json.loads(json.dumps(asked.record(answer, cases)))


def verified(piece: str, cases: list[Case], data: Any) -> Any:
    return find_piece(f"lab5.{piece}").verify(cases_from_data(cases_to_data(cases)), data)


def evidence_of(piece: str, seed: int = 0, answer: Any = None) -> list[Evidence]:
    cases, data = recorded(piece, answer or fresh()[PIECES[piece]], seed)
    judge = judge_of(f"lab5.{piece}")
    return [read_evidence(judge, case, outcome) for case, outcome in zip(cases, data["outcomes"], strict=True)]


def play(parts: Mapping[str, Any], case: Case, **options: Any) -> EmulatedDevice:
    devices: list[EmulatedDevice] = []

    def open_device(**more: Any) -> EmulatedDevice:
        devices.append(EmulatedDevice(**options, **more))
        return devices[-1]

    scripts.play(parts, case.inputs, open_device)
    return devices[0]


# Scripts


@pytest.mark.parametrize("piece", PIECES)
def test_the_given_parts_pass_whatever_is_drawn(piece: str) -> None:
    for seed in (1, 2):
        assert (report := examine(f"lab5.{piece}", fresh()[PIECES[piece]], seed=seed)).passed, str(report)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_given_parts_show_the_same_bytes_in_every_order(schedule: str) -> None:
    for case in script_draw.written(Random("s")):
        device = play(neighbours(""), case, schedule=schedule)
        seen, home = scripts.PoolScript.of(case.inputs).contents()
        assert device.hazards == [] and len(seen) and len(home)


def test_scripts_of_prefetch_refuse_evict_what_is_coming_and_bring_pages_back_while_they_go_home() -> None:
    for seed in range(2):
        calls = [call for evidence in evidence_of("prefetch", seed) for call in pages_of(evidence).calls]
        assert any(call.name == "acquire" and call.result == REFUSED for call in calls)
        assert any(call.name == "prefetch" and call.result == 0 for call in calls)
        fetched = [(call, one) for call in calls for one in call.copies if one.brings]
        assert any(one.held is not None and one.held not in call.before.arrived for call, one in fetched)
        waits = [
            (record.value, other.value)
            for evidence in evidence_of("prefetch", seed)
            for record, other in zip(evidence.stream, list(evidence.stream)[1:], strict=False)
            if isinstance(record, Wait) and isinstance(other, Wait) and other.fence.startswith("saved")
        ]
        assert any(saved for _, saved in waits)


def test_scripts_acquire_pages_more_than_once_and_write_some_and_only_read_others() -> None:
    for seed in range(2):
        for piece in ("acquire", "release"):
            calls = [call for evidence in evidence_of(piece, seed) for call in pages_of(evidence).calls]
            assert any(max(call.before.pins.values(), default=0) > 1 for call in calls)
        copies = [one for evidence in evidence_of("write_back", seed) for one in pages_of(evidence).copies]
        assert any(not one.brings for one in copies)
        left = [one for one in copies if one.brings and one.held is not None]
        assert left and not any(one.dirty for one in left)


def test_no_page_is_written_in_the_scripts_of_clean_eviction() -> None:
    for evidence in evidence_of("evict"):
        pages = pages_of(evidence)
        assert all(one.brings for one in pages.copies) and not any(use.writes for use in pages.uses)


LOST = {
    "prefetch": "    queue.wait(pool.released, pool.last_use[frame])\n",
    "acquire": "        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])\n",
    "evict": "        queue.wait(pool.released, pool.last_use[frame])\n",
}


@pytest.mark.parametrize("part", LOST)
def test_a_wait_left_out_is_found_with_its_line_and_shows_in_some_order(part: str) -> None:
    parts = fresh(**{part: (LOST[part], "")})
    drawn = script_draw.written(Random("lost")) if part == "evict" else script_draw.asked_ahead(Random("lost"))
    hazards = [hazard for case in drawn for hazard in play(parts, case).hazards]
    assert hazards and any(f"<{part} " in hazard.report() or "lab5/script.py" in hazard.report() for hazard in hazards)


# What is needed, and what is too much


def test_nothing_orders_more_than_pages_and_frames_need_and_both_directions_overlap() -> None:
    for evidence in evidence_of("write_back", 3)[:2]:
        assert too_much_order(evidence) is None
        brought = [one.record for one in pages_of(evidence).copies if one.brings]
        saved = [one.record for one in pages_of(evidence).copies if not one.brings]
        assert any(evidence.ordering.concurrent(one, other) for one in brought for other in saved)


def test_what_has_to_be_over_is_over() -> None:
    for evidence in evidence_of("prefetch", 4):
        needed = needed_order(evidence)
        for late, bits in needed.items():
            for early in needed:
                assert not bits >> early & 1 or evidence.ordering.before(early, late)


def test_a_wait_for_the_newest_value_is_too_much_and_is_named() -> None:
    parts = fresh(prefetch=("pool.last_use[frame]", "pool.released.last_submitted"))
    report = examine("lab5.prefetch", parts["prefetch"])
    assert not report.passed and report.misconception is not None
    assert report.misconception.name == "Waits for more than its frame" and "pool.released" in (report.line or "")


# Recordings are not believed


def records_of(data: dict[str, Any], case: int = 0) -> list[dict[str, Any]]:
    return data["outcomes"][case]["stream"]["records"]


def without(data: dict[str, Any], case: int, wanted: Any) -> dict[str, Any]:
    forged = copy.deepcopy(data)
    records = records_of(forged, case)
    place = next(i for i, record in enumerate(records) if wanted(record))
    del records[place]
    for call in forged["outcomes"][case]["calls"]:
        call["begin"] -= call["begin"] > place
        call["end"] -= call["end"] > place
    return forged


@pytest.fixture(scope="module")
def good() -> tuple[list[Case], dict[str, Any]]:
    return recorded("write_back", fresh()["evict"], 5)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (lambda record: record["op"] == "wait" and record["queue"] == "write back", "race"),
        (lambda record: record["op"] == "wait" and record["fence"].startswith("saved") and record["value"], "race"),
        (lambda record: record["op"] == "copy" and record["queue"] == "write back", "lost"),
        (lambda record: record["op"] == "allocate", "cannot be run"),
        (lambda record: record["op"] == "host_read", "not of what was asked"),
        (lambda record: record["op"] == "copy" and record["label"].startswith("use"), "other pages than the script"),
    ],
)
def test_a_recording_that_leaves_something_out_is_not_believed(
    good: tuple[list[Case], Any], wanted: Any, words: str
) -> None:
    cases, data = good
    assert verified("write_back", cases, data).passed
    report = verified("write_back", cases, without(data, 0, wanted))
    assert not report.passed and words in str(report), str(report)


def test_a_use_of_other_bytes_than_a_frame_s_is_found(good: tuple[list[Case], Any]) -> None:
    cases, data = copy.deepcopy(good)
    use = next(record for record in records_of(data) if record.get("label", "").startswith("use"))
    use["src"]["buffer"] = "fresh"
    use["src"]["offset"] = 0
    assert not verified("write_back", cases, data).passed


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [{"name": "acquire", "begin": 0, "end": 10**6, "values": [0, 0]}],
        [{"name": "acquire", "begin": 5, "end": 9, "values": ["a page", "a frame"]}],
        [{"name": "release", "begin": 9, "end": 9, "values": []}],
        [{"name": "prefetch", "begin": 7, "end": 8, "values": [3, 1]}] * 3,
    ],
)
def test_whatever_calls_are_claimed_there_is_a_report_and_no_pass(good: tuple[list[Case], Any], calls: Any) -> None:
    cases, data = copy.deepcopy(good)
    for outcome in data["outcomes"]:
        outcome["calls"] = calls
    assert not verified("write_back", cases, data).passed


@pytest.mark.parametrize("piece", PIECES)
def test_the_given_part_cannot_be_imported_while_an_answer_is_recorded(piece: str) -> None:
    part = PIECES[piece]

    def answer(pool: Any, *arguments: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"xinfer_lab.labs.lab5.parts.{part}"), part)(pool, *arguments)

    report = examine(f"lab5.{piece}", answer)
    assert not report.passed and "module that holds the answer" in report.headline


def test_what_never_comes_to_an_end_is_stopped_and_named() -> None:
    refusal = inspect.getsource(neighbours("")["acquire"]).split("\n")[2:4]
    parts = fresh(acquire=("\n".join(refusal), "    while not pool.prefetch(page, ahead=False):\n        pass"))
    report = examine("lab5.acquire", parts["acquire"])
    assert report.misconception is not None and report.misconception.name == "It spins"


# The pool that is given


@pytest.fixture
def pool() -> PartsPool:
    return PartsPool(EmulatedDevice(), frames=2, pages=4, page_bytes=512, parts=neighbours(""))


@pytest.mark.parametrize(
    ("part", "ask", "words"),
    [
        ("prefetch", lambda pool: pool.prefetch(0), "prefetch has to return True or False"),
        ("acquire", lambda pool: pool.acquire(0), "acquire has to return the page's frame"),
        ("evict", lambda pool: pool.evict(0), "evict has to return the frame that is free"),
    ],
)
def test_a_part_that_returns_nothing_is_told_what_it_has_to_return(part: str, ask: Any, words: str) -> None:
    parts = {**neighbours(""), part: lambda *arguments: None}
    with pytest.raises(TypeError, match=words):
        ask(PartsPool(EmulatedDevice(), frames=1, pages=2, page_bytes=256, parts=parts))


def test_room_is_made_by_the_policy_and_never_by_a_page_that_is_used_or_ahead_of_time_by_one_on_its_way(
    pool: PartsPool,
) -> None:
    assert pool.prefetch(0) and pool.prefetch(1) and not pool.prefetch(2)
    assert pool.acquire(2) in (0, 1) and pool.acquire(3) in (0, 1)
    with pytest.raises(PoolFull):
        pool.acquire(0)
    pool.release(2)
    assert pool.make_room(True) is not None and pool.table.state(2) == "IN_HOST"
    pool.close()


def test_pages_as_extents_hold_one_page_each_and_count_what_was_found(pool: PartsPool) -> None:
    pages = SinglePages(pool)
    first, second = pages.create(100), pages.create(512, "second")
    with pytest.raises(HostPoolFull):
        pages.create(513)
    with pytest.raises(PageError):
        pages.view(first, "uint8", (100,))
    assert pages.prefetch(first) and pages.holds(first) and not pages.holds(second)
    pages.acquire(first, second)
    assert pages.view(second, "uint8", (256,), 256).span.size == 256
    pages.release(first, second)
    pages.acquire(first)
    pages.release(first)
    found = pages.statistics()
    assert (found.prefetches, found.late, found.misses, found.hits) == (1, 1, 1, 1)
    assert found.bytes_to_device == 2 * 512
    pages.destroy(first)
    assert not pages.holds(first) and pages.create(1).first not in (second.first,)
    pages.close()


def test_a_span_is_a_page_or_a_frame_by_its_buffer_and_whole_only_where_it_begins_and_ends_with_it() -> None:
    shape = PageShape(2, 3, 512)
    assert (shape.frame_at(Span("pool", 600, 8)), shape.page_at(Span("pool.home", 1100, 8))) == (1, 2)
    assert shape.frame_at(Span("pool.home", 0, 8)) is None and shape.page_at(Span("pool", 0, 8)) is None
    assert shape.is_whole(Span("pool", 512, 512))
    assert not shape.is_whole(Span("pool", 256, 512)) and not shape.is_whole(Span("pool", 0, 256))


def test_a_trial_draws_the_three_queues_and_says_what_it_took() -> None:
    requests = ["write 0", "put 0", "release 0", "acquire 1", "use 1", "release 1", "acquire 2", "use 2", "release 2"]
    trial = try_parts(neighbours(""), requests, frames=1, pages=3)
    assert str(trial).startswith("0 hazards") and trial.seconds > 0
    assert "write back" in trial.picture.alt and any("save page 0" in " ".join(row) for row in trial.picture.table)


# The gate


def cases_of_the_gate(seed: int) -> list[MixtureCase]:
    return [MixtureCase.of(case.inputs) for case in mixtures(Random(seed))]


def test_the_budget_of_the_gate_is_what_it_needs_and_has_no_room_for_one_frame_more() -> None:
    for case in cases_of_the_gate(1):
        devices: list[EmulatedDevice] = []

        def open_device(devices: list[EmulatedDevice] = devices, **options: Any) -> EmulatedDevice:
            devices.append(EmulatedDevice(**options))
            return devices[-1]

        _, logits = run_mixture(case, neighbours(""), open_device)
        assert compare_logits(resident_run(case).logits, logits) == (True, 0.0)
        (device,) = devices
        assert device.hazards == []
        assert case.memory - device.memory.use().peak == case.shape.page_bytes // 2
        more = MixtureCase(**{**case.inputs(), "frames": case.frames + 1})
        with pytest.raises(OutOfDeviceMemory):
            run_mixture(more, neighbours(""), EmulatedDevice)


def test_experts_do_not_fit_and_keys_and_values_go_home_and_come_back() -> None:
    cases, data = recorded("gate", fresh(), 2)
    judge = judge_of("lab5.gate")
    for case, outcome in zip(cases, data["outcomes"], strict=True):
        evidence = read_evidence(judge, case, outcome)
        assert evidence.case.frames < evidence.case.layers * evidence.case.experts
        ours, clocks = hit_rates(evidence)
        assert ours == clocks == expected_share(evidence)
    assert any(not one.brings for one in pages_of(evidence).copies)
    assert verified("gate", cases, data).passed


def expected_share(evidence: Evidence) -> float:
    acquired = sum(call.name == "acquire" for call in pages_of(evidence).calls)
    return 1 - len(pages_of(evidence).brought) / acquired


def test_what_is_noted_makes_no_hit_rate() -> None:
    cases, data = recorded("gate", fresh(), 3)
    before = [
        hit_rates(read_evidence(judge_of("lab5.gate"), *one)) for one in zip(cases, data["outcomes"], strict=True)
    ]
    for outcome in data["outcomes"]:
        last = outcome["calls"][-1]
        page, end = last["values"][0], last["end"]
        for name, values in (("acquire", [page, 0]), ("release", [page])) * 5:
            outcome["calls"].append({"name": name, "begin": end, "end": end, "values": values})
    after = [hit_rates(read_evidence(judge_of("lab5.gate"), *one)) for one in zip(cases, data["outcomes"], strict=True)]
    assert before == after
    assert not verified("gate", cases, data).passed


@pytest.mark.parametrize("piece", PIECES)
def test_a_call_that_is_noted_with_other_bounds_is_not_believed(piece: str) -> None:
    cases, data = recorded(piece, fresh()[PIECES[piece]], 3)
    call = next(one for one in data["outcomes"][0]["calls"] if one["name"] == "release")
    call["end"] = call["begin"]
    assert not verified(piece, cases, data).passed


@pytest.mark.sampled
def test_a_policy_that_keeps_the_wrong_pages_fails_the_gate_by_its_hit_rate_alone() -> None:
    class LastUsed:
        """Gives up what was used last."""

        def __init__(self) -> None:
            self.order: list[int] = []
            self.uses: Counter[int] = Counter()

        def placed(self, page: int) -> None:
            self.order.append(page)

        def used(self, page: int) -> None:
            self.order.remove(page)
            self.order.append(page)
            self.uses[page] += 1

        def removed(self, page: int) -> None:
            self.order.remove(page)

        def choose(self, may_go: Any, incoming: int | None = None) -> int | None:
            return next((page for page in reversed(self.order) if may_go(page)), None)

    class MostUsed(LastUsed):
        """Gives up what was used most."""

        def choose(self, may_go: Any, incoming: int | None = None) -> int | None:
            return max(filter(may_go, self.order), key=self.uses.__getitem__, default=None)

    class LeastRecent(LastUsed):
        """Gives up what was not used for longest."""

        def choose(self, may_go: Any, incoming: int | None = None) -> int | None:
            return next(filter(may_go, self.order), None)

    class FirstIn(LeastRecent):
        """Gives up what came first."""

        def used(self, page: int) -> None:
            """Does not matter."""

    for seed in (0, 5):
        for policy in (LeastRecent, FirstIn):
            assert (report := examine("lab5.gate", {**fresh(), "Clock": policy}, seed=seed)).passed, str(report)
        for policy in (LastUsed, MostUsed):
            report = examine("lab5.gate", {**fresh(), "Clock": policy}, seed=seed)
            assert not report.passed and "hit rate of at least three quarters" in (report.expected or ""), str(report)
            assert "def choose" in (report.line or "") and report.misconception is not None


def test_the_gate_does_not_believe_a_recording_without_its_waits() -> None:
    cases, data = recorded("gate", fresh(), 4)
    forged = without(data, 1, lambda record: record["op"] == "wait" and record["queue"] == "direct")
    report = verified("gate", cases, forged)
    assert not report.passed and "race" in report.headline


def test_what_is_used_in_the_gate_was_brought() -> None:
    cases, data = recorded("gate", fresh(), 4)
    forged = copy.deepcopy(data)
    copies = [record for record in records_of(forged) if record.get("label", "").startswith("bring")]
    for record in copies:
        record["src"]["offset"] = copies[0]["src"]["offset"]
    assert not verified("gate", cases, forged).passed
    assert all(record["op"] == Copy.op for record in copies)


def test_a_fault_that_comes_late_is_in_its_picture() -> None:
    asked = "if pool.table.is_dirty(page):"
    parts = fresh(evict=(asked, asked.replace(":", " or pool.saved.last_submitted > 11:")))
    cases, data = recorded("write_back", parts["evict"])
    report = verified("write_back", cases, data)
    assert report.picture is not None and "nobody has written it" in report.headline
    start = re.search(r"Excerpt from ([\d.]+) ms", report.picture.alt)
    assert start is not None and float(start[1]) > 1, report.picture.alt


def test_a_pool_whose_policy_hears_of_no_use_keeps_other_pages_than_clock() -> None:
    report = examine("lab5.acquire", fresh(acquire=("    pool.policy.used(page)\n", ""))["acquire"])
    assert report.misconception is not None and report.misconception.name == "The policy does not hear of uses"


def test_a_draw_ends_though_no_model_tells_policies_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(mixture_draw, "tells_policies_apart", lambda case: asked.append(case) or False)
    wide, tight = mixture_draw.mixtures(Random(3))
    assert len(asked) == 64
    assert (wide.inputs["layers"], tight.inputs["frames"]) == (3, 2)
