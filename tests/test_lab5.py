"""Lab 5: its judges agree with the package's own pool and policies, and its text says what its pictures show."""

from __future__ import annotations

import inspect
import io
import re
from contextlib import redirect_stdout
from importlib import import_module
from itertools import combinations, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answer_bank import given_and_answers
from tests.notebooks import SOLUTIONS, read, text
from tools.lab5_pictures import ALL_NAMES, ALL_SIZES, ALL_USES, DIALS, SCAN, explored
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.grading import examine, find_piece, pieces_of
from xinfer_lab.grading.check import examine_on
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.verify_values import equal
from xinfer_lab.labs.lab5.given.replacement import compare_policies, count_hits, cyclic_bound, cyclic_scan
from xinfer_lab.labs.lab5.judge.clock import Dial
from xinfer_lab.labs.lab5.page_trial import PATTERNS, try_pool, uses_of
from xinfer_lab.labs.lab5.parts import PARTS, neighbours
from xinfer_lab.labs.lab5.policy import play_policy
from xinfer_lab.labs.lab5.table import play_table
from xinfer_lab.paging.errors import PageError, PoolFull
from xinfer_lab.paging.policy import open_policy

(SOURCE,) = (path for path in SOLUTIONS if path.parent.name.startswith("lab5"))
CELLS = {cell["id"]: text(cell) for cell in read(SOURCE)["cells"]}
VALUES = ("table", "table_refuses", "clock", "clock_pins", "lru_hits", "best_hits")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the instructor's notebook defines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with redirect_stdout(io.StringIO()):
        for place, source in given_and_answers("lab5"):
            exec(compile(source, place, "exec"), names)
    return names


def question(name: str) -> Question:
    piece = find_piece(f"lab5.{name}")
    assert isinstance(piece, Question)
    return piece


def test_every_piece_of_the_lab_has_a_judge() -> None:
    for piece in pieces_of("lab5"):
        assert judge_of(piece.name).passed


@pytest.mark.parametrize("name", VALUES)
def test_whatever_is_drawn_every_wrong_idea_is_told_from_the_truth_and_from_every_other(name: str) -> None:
    judge = judge_of(f"lab5.{name}")
    compare = judge.compare or equal
    for seed in (0, 1, 2, 3):
        inputs = [case.inputs for case in question(name).draw(seed)]
        ideas = {"the truth": [judge.truth(one) for one in inputs]}
        ideas |= {idea.name: [idea.model(one) for one in inputs] for idea in judge.wrong if idea.model}
        for (first, one), (second, two) in combinations(ideas.items(), 2):
            same = all(compare(a, b, "") is None for a, b in zip(one, two, strict=True))
            assert not same, f"seed {seed}: {first} and {second} are the same"


def test_the_parts_that_stand_beside_an_answer_are_right_themselves() -> None:
    # Their refusals count as an answer's do only where they are no lines of the package.
    parts: dict[str, Any] = {"__name__": "__main__"}
    for module in ("table", "clock"):
        source = inspect.getsource(import_module(f"xinfer_lab.labs.lab5.parts.{module}"))
        exec(compile(source, f"<{module}>", "exec"), parts)
    for name, part in (
        ("table", "PageTable"),
        ("table_refuses", "PageTable"),
        ("clock", "Clock"),
        ("clock_pins", "Clock"),
    ):
        piece, judge = question(name), judge_of(f"lab5.{name}")
        for case in piece.draw(3):
            assert judge.compare(judge.truth(case.inputs), piece.ask(parts[part], case.inputs, {}), "") is None


def test_a_piece_has_all_parts_beside_it_but_its_own() -> None:
    assert set(neighbours("clock")) == set(PARTS.values()) - {"Clock"}
    package = "xinfer_lab.labs.lab5.parts"
    for name in ("prefetch", "acquire", "release", "evict"):
        assert {part for part in PARTS if f"{package}.{part}" in find_piece(f"lab5.{name}").denied_modules} == {name}


def test_what_is_given_no_part_is_recorded_in_the_process_of_the_gate() -> None:
    denied = find_piece("lab5.gate").denied_modules
    assert "xinfer_lab.labs.lab5.parts" in denied
    assert all(piece.denied_modules == denied for piece in pieces_of("lab5") if isinstance(piece, Question))


USES = st.lists(
    st.tuples(
        st.sampled_from(["used", "used", "used", "fetched", "taken out"]), st.integers(0, 7), st.sets(st.integers(0, 7))
    ).map(lambda use: [use[0], use[1], sorted(use[2] - {use[1]})]),
    max_size=60,
)


@settings(max_examples=150)
@given(st.integers(1, 5), USES)
def test_three_ways_to_write_clock_choose_the_same_pages(answers: dict[str, Any], frames: int, uses: list[Any]) -> None:
    inputs = {"frames": frames, "uses": uses}
    chosen = play_policy(open_policy("clock"), inputs)
    assert play_policy(answers["Clock"](), inputs) == chosen
    assert play_policy(Dial(), inputs) == chosen
    assert play_policy(neighbours("")["Clock"](), inputs) == chosen


@settings(max_examples=100)
@given(st.integers(1, 12), st.integers(1, 14), st.integers(1, 6))
def test_the_hits_of_a_scan_are_those_of_the_packages_policies(
    answers: dict[str, Any], pages: int, frames: int, passes: int
) -> None:
    uses = cyclic_scan(pages, passes)
    inputs = {"pages": pages, "frames": frames, "passes": passes}
    for name, policy in (("lru_hits", open_policy("lru")), ("best_hits", open_policy("belady", uses))):
        found = count_hits(policy, uses, frames)
        assert judge_of(f"lab5.{name}").truth(inputs) == answers[name](pages, frames, passes) == found


def test_a_fixed_set_comes_within_a_page_of_the_best_there_is(answers: dict[str, Any]) -> None:
    for pages, frames in ((6, 4), (28, 21), (80, 7)):
        best = answers["best_hits"](pages, frames, 1000) / 999
        assert frames - 1 <= best < frames and best == pytest.approx(cyclic_bound(pages, frames), rel=1e-2)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 4))
def test_a_table_never_contradicts_itself_whatever_it_is_asked(
    answers: dict[str, Any], seed: int, pages: int, frames: int
) -> None:
    random, table = Random(seed), answers["PageTable"](pages, frames)
    for _ in range(60):
        name, page = random.choice(["bind", "arrive", "pin", "unpin", "unbind", "mark_dirty", "mark_clean"]), 0
        page = random.randrange(pages)
        arguments = (page, random.randrange(frames)) if name == "bind" else (page,)
        before = repr((table.entries, table.owners))
        try:
            getattr(table, name)(*arguments)
        except PageError:
            assert repr((table.entries, table.owners)) == before
        there = {page: table.frame_of(page) for page in range(pages) if table.frame_of(page) is not None}
        assert {frame: page for page, frame in there.items()} == {
            frame: table.page_in(frame) for frame in range(frames) if table.page_in(frame) is not None
        }
        for page in range(pages):
            assert (table.state(page) == "IN_HOST") == (page not in there)
            assert table.state(page) == "IN_DEVICE" or table.pins(page) == 0
            assert page in there or not table.is_dirty(page)
        assert table.free_frame() == min(set(range(frames)) - set(there.values()), default=None)


def test_a_refusal_says_why_and_which_calls_came_before(answers: dict[str, Any]) -> None:
    def pin(self: Any, page: int) -> None:
        self.entries[page].pins += 1

    report = examine("lab5.table_refuses", type("Lax", (answers["PageTable"],), {"pin": pin}))
    found = re.fullmatch(r"pin\((\d+)\) has to be refused\.", report.headline)
    assert not report.passed and found
    page = found[1]
    assert report.expected and report.expected.startswith(f"PageError, because page {page} is ")
    assert report.got == "done" and report.where and report.where.endswith(f"pin({page})")
    assert report.line and report.line.endswith("def pin(self: Any, page: int) -> None:")


def test_a_table_that_cannot_be_looked_at_is_told_so() -> None:
    class PageTable:
        def __init__(self, pages: int, frames: int) -> None:
            pass

        def bind(self, page: int, frame: int) -> None:
            pass

        def state(self, page: int) -> str:
            return self.entries[page]  # type: ignore[attr-defined,no-any-return]

    report = examine("lab5.table", PageTable)
    assert "AttributeError" in str(report) and report.line and "entries" in report.line


def test_a_recording_of_a_table_is_not_believed_whatever_is_in_it(answers: dict[str, Any]) -> None:
    judge, (case, *_) = judge_of("lab5.table"), question("table").draw(0)
    right = play_table(answers["PageTable"], case.inputs, {})
    truth = judge.truth(case.inputs)
    assert judge.compare(truth, right, "") is None
    forged = [
        None,
        [],
        [7],
        [{}],
        right[:-1],
        [*right, right[0]],
        [{**right[0], "look": 3}],
        [{**right[0], "did": [1]}],
    ]
    for recorded in forged:
        assert judge.compare(truth, recorded, "") is not None
    assert judge_of("lab5.clock").compare([1, 2], {"victims": 3}, "") is not None
    assert judge_of("lab5.clock").compare([1, 2], {"victims": [1, True]}, "") is not None
    assert judge_of("lab5.clock").compare([1, 2], {"victims": [1]}, "") is not None


@pytest.mark.parametrize("seed", range(8))
def test_every_draw_binds_pages_to_their_own_frames_and_refuses_for_written_ones(seed: int) -> None:
    asked: set[tuple[str, str, bool]] = set()
    for case in question("table_refuses").draw(seed):
        if "in no order" in case.label or "in order" in case.label:
            continue
        before: dict[str, str] = {}
        for step in judge_of("lab5.table_refuses").truth(case.inputs):
            name, page, *frame = re.findall(r"\w+", step["call"])
            said = before.get(f"page {page}", "")
            if step["did"] == "PageError":
                own = bool(frame) and f"frame {frame[0]}," in said
                asked.add((f"{name} again" if own else name, said.partition(",")[0], said.endswith("dirty True")))
            before = step["look"]
    there = "IN_DEVICE"
    assert {("bind again", "MIGRATING", False), ("bind again", there, False)} <= asked
    assert {(name, there, True) for name in ("bind", "bind again", "arrive", "unpin", "unbind")} <= asked


@pytest.mark.parametrize("seed", range(8))
def test_every_draw_reads_a_page_that_another_user_wrote(seed: int) -> None:
    pinned = 0
    for case in question("table").draw(seed):
        steps = judge_of("lab5.table").truth(case.inputs)
        pinned += sum(step["call"].startswith("pin") and "pins 2, dirty True" in str(step["look"]) for step in steps)
    assert pinned


HEARD = {
    "nothing": ("acquire", "    pool.policy.used(page)\n", ""),
    "first uses only": (
        "acquire",
        "    pool.policy.used(page)\n",
        "    if len(pool.device.stream) > begun:\n        pool.policy.used(page)\n",
    ),
    "later uses only": (
        "acquire",
        "    pool.policy.used(page)\n",
        "    if len(pool.device.stream) == begun:\n        pool.policy.used(page)\n",
    ),
    "too much": ("prefetch", "        return True\n", "        pool.policy.used(page)\n        return True\n"),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("heard", HEARD)
def test_what_a_policy_hears_shows_in_the_same_case_of_every_draw(seed: int, heard: str) -> None:
    part, old, new = HEARD[heard]
    source = inspect.getsource(neighbours("")[part])
    assert old in source
    begins = '    """See Lab 5."""\n'
    source = source.replace(old, new, 1).replace(begins, f"{begins}    begun = len(pool.device.stream)\n")
    piece = find_piece(f"lab5.{part}")
    (case,) = (case for case in piece.draw(seed) if case.label.startswith("second chances"))
    reports = []
    for code in (inspect.getsource(neighbours("")[part]), source):
        names: dict[str, Any] = {"PoolFull": PoolFull}
        exec(compile(code, f"<{heard}>", "exec"), names)
        reports.append(examine_on([case], piece.name, names[part]))
    right, wrong = reports
    assert right.passed and not wrong.passed, str(right)
    assert wrong.headline == "Another page leaves than CLOCK would choose."


def test_who_reads_what_only_their_own_table_stores_is_told_that_the_check_brings_another(
    answers: dict[str, Any],
) -> None:
    def release(pool: Any, page: int) -> None:
        pool.table.entries[page].pins -= 1

    def choosy(pool: Any, page: int) -> None:
        pool.policy.ring.remove(page)

    for answer in (release, choosy):
        report = str(examine("lab5.release", answer))
        assert "'entries'" in report or "'ring'" in report
        assert "The pool's table and policy are not yours here" in report
    # At the gate they are the student's own, and the error is another one.
    parts = {name: answers[name] for name in PARTS.values()}
    lost = "def prefetch(pool, page, ahead=True):\n    return pool.table.places[page]\n"
    names: dict[str, Any] = {}
    exec(compile(lost, "<lost>", "exec"), names)
    report = str(examine("lab5.gate", parts | {"prefetch": names["prefetch"]}))
    assert "has no attribute 'places'" in report and "are not yours here" not in report


def test_small_letters_are_as_good_as_capitals() -> None:
    small, capital = (examine("lab5.explain_article", rows) for rows in (["c", "b", "e", "f"], ["C", "B", "E", "F"]))
    assert str(small) == str(capital) and "none of the letters" not in str(small)
    assert "Row 1 has none of the letters." in str(examine("lab5.explain_article", ["z", "B", "E", "F"]))
    assert "A row is not filled in." in str(examine("lab5.explain_article", ["C", None, "E", "F"]))
    assert sum(examine("lab5.explain_scan", letter).passed for letter in "aAbBcCdD") == 2


def test_the_text_says_which_calls_the_pools_table_has(answers: dict[str, Any]) -> None:
    def calls(part: Any) -> set[str]:
        return {name for name in dir(part) if not name.startswith("_")}

    (said,) = (line for line in CELLS["pool-text"].splitlines() if line.startswith("**Which table that is.**"))
    _, table, policy, *_ = re.split(r"of the table |of the policy ", said)
    assert set(re.findall(r"`(\w+)`", table)) == calls(neighbours("")["PageTable"]) == calls(answers["PageTable"])
    assert set(re.findall(r"`(\w+)`", policy.partition(".")[0])) == calls(neighbours("")["Clock"])
    for cell in ("pool-prefetch", "pool-acquire", "pool-release", "pool-evict"):
        assert "only the calls of Tasks 2 and 3 may be used: the check brings its own." in CELLS[cell]


def test_a_choice_that_may_not_go_ends_the_play_and_none_leaves_the_pool_as_it_was() -> None:
    class First(Dial):
        def choose(self, may_go: Any, incoming: int | None = None) -> int | None:
            return self.ring[0]

    inputs = {"frames": 1, "uses": [["used", 1, []], ["used", 2, [1]], ["used", 3, []]]}
    assert play_policy(First(), inputs) == [1]
    assert play_policy(Dial(), inputs) == [None, 1]


def test_the_short_pool_of_the_opening_shows_each_of_its_symptoms() -> None:
    names: dict[str, Any] = {}
    said = io.StringIO()
    with redirect_stdout(said):
        for name in ("setup", "article-pool", "article-run"):
            exec(compile(CELLS[name], name, "exec"), names)
    words = said.getvalue()
    assert "acquire(0) returns None" in words and "release(0) changes nothing" in words
    assert "acquire(2) looked 100,000 times" in words and "IN_HOST" in words
    assert [hazard.kind for hazard in names["device"].hazards] == ["read-after-write"]
    letters = [line[-1] for line in CELLS["article-pool"].splitlines() if line[-3:-1] == "# "]
    assert letters == question("explain_article").draw(0)[0].inputs["choices"]


def test_the_first_pictures_table_is_what_the_pool_did() -> None:
    from tools.lab5_pictures import mechanism

    rows = [row.split("|")[1:-1] for row in CELLS["pages"].splitlines() if row.startswith("| ")][2:]
    drawn = mechanism().table
    assert len(rows) == len(drawn)
    for row, (use, what, _, fetched, saved, *held) in zip(rows, drawn, strict=True):
        number, page, *frames, moved = (cell.strip() for cell in row)
        assert number == use and what == f"use page {page.partition(',')[0]}"
        for said, really in zip(frames, held, strict=True):
            assert said.strip("*").partition(",")[0] == ("" if really == "nothing" else really.split()[1])
            assert ("**" in said) == ("(in use" in really)
            assert "dirty" in really or "dirty" not in said
        assert (f"{page.partition(',')[0]} comes" in moved) == bool(fetched) and ("home" in moved) == bool(saved)


def test_the_dials_are_what_clock_does() -> None:
    clock = Dial()

    def shows(moment: int) -> None:
        words, pages, marked, hand = DIALS[moment]
        order = [pages[(hand + step) % 4] for step in range(4)]
        assert clock.ring == order and clock.marks == marked, words

    for page in range(4):
        clock.placed(page)
    shows(0)
    for moment, page in ((1, 4), (3, 5), (4, 6)):
        if moment == 3:
            clock.used(2)
            shows(2)
        gone = clock.choose(lambda page: True)
        assert gone is not None
        clock.removed(gone)
        clock.placed(page)
        shows(moment)
    clock.used(5)
    assert clock.choose(lambda page: page != 2) == 4
    assert "goes, goes_without_2 = 2, 4" in CELLS["clock-faded"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("device.direct_queue.wait(arrived, 3)", "right"),
        ("arrived.wait(3)", "the host waits"),
        ("device.direct_queue.wait(arrived, 2)", "read after write"),
        ("...", "read after write"),
    ],
)
def test_the_gap_of_the_worked_example_takes_a_wait_of_the_queue_alone(line: str, said: str) -> None:
    source = CELLS["pool-faded"].replace("device.direct_queue.wait(arrived, 3)", line)
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "pool-faded", "exec"), {"EmulatedDevice": EmulatedDevice})
    assert said in out.getvalue() and ("right" in out.getvalue()) == (said == "right")


@pytest.mark.parametrize("cell", ["table-faded", "clock-faded"])
def test_a_gap_that_is_not_graded_does_not_show_its_answer(cell: str) -> None:
    answer = re.search(r"### BEGIN SOLUTION.*?\n(.*?)\n### END SOLUTION", CELLS[cell], re.DOTALL)
    assert answer
    values = answer[1].partition(" = ")[2]
    names: dict[str, Any] = {}
    for source, said in (
        (CELLS[cell], "right\n"),
        (CELLS[cell].replace(values, "0, " * values.count(",") + "0"), "not yet"),
    ):
        with redirect_stdout(io.StringIO()) as out:
            exec(compile("from zlib import crc32\n" + source, cell, "exec"), names)
        assert out.getvalue().startswith(said)


def test_the_scans_under_two_rules_find_what_the_text_says() -> None:
    for policy, hits in (("lru", 0), ("belady", 8)):
        assert try_pool(SCAN, 4, policy).statistics.hits == hits and f"{hits} of 18" in CELLS["scan-pictures"]
    assert try_pool(SCAN, 4, "clock").statistics.hits == 0


def test_the_pool_for_everything_copies_home_only_what_was_written(answers: dict[str, Any]) -> None:
    names: dict[str, Any] = {"try_pool": try_pool}
    with redirect_stdout(io.StringIO()):
        exec(compile(CELLS["together-run"].partition("for frames in")[0], "together-run", "exec"), names)
    # The picture leaves out the experts that nobody chose; the cell has all of them.
    drawn = [ALL_NAMES[thing] for thing in ALL_USES]
    assert drawn == [names["NAMES"][thing] for token in names["TOKENS"] for thing in token]
    trial = try_pool(ALL_USES, 8, "clock", sizes=ALL_SIZES, names=ALL_NAMES, written={2, 3})
    assert trial.hazards == 0
    saved = [row[4] for row in trial.picture.table if row[4]]
    assert saved == ["kv 0", "kv 1"]
    found = [not row[3] for row in trial.picture.table]
    assert [sum(found[begin : begin + 6]) for begin in (0, 6, 12)] == [0, 5, 1]
    assert names["all_in_one"]().statistics == trial.statistics


def test_the_explorations_table_has_the_figures_of_its_picture() -> None:
    for pattern, found in explored().items():
        hits = " | ".join(str(one.hits) for one in found)
        assert any(
            line.startswith(f"| {pattern} |") and f"| {hits} |" in line for line in CELLS["explore-text"].splitlines()
        )


def test_clock_comes_as_close_to_lru_on_skewed_uses_as_the_answers_say() -> None:
    more = []
    for pages in range(3, 13):
        for frames in range(1, 9):
            hits = {one.policy: one.hits for one in compare_policies(uses_of("skewed", pages, 40), frames)}
            more.append(hits["clock"] - hits["lru"])
    said = CELLS["explore-answers"]
    assert f"{sum(one > 0 for one in more)} of the {len(more)} that" in said
    assert f"CLOCK finds {-sum(more) / len(more):.2f} hits fewer than LRU" in said


def test_the_best_rule_finds_of_a_long_scan_what_the_text_says(answers: dict[str, Any]) -> None:
    assert (
        f"20 against {answers['best_hits'](28, 21, 100) / 99:.1f} for 28 pages and 21 frames"
        in CELLS["scan-discussion"]
    )


def test_patterns_are_what_they_are_called() -> None:
    assert uses_of("cyclic", 3, 7) == [0, 1, 2, 0, 1, 2, 0]
    assert uses_of("looping", 4, 8) == [0, 1, 2, 0, 1, 3, 0, 1]
    skewed = uses_of("skewed", 6, 400)
    assert skewed == uses_of("skewed", 6, 400) and all(a >= b for a, b in pairwise(map(skewed.count, (0, 1, 3))))
    for pattern, pages in (("random", 5), ("cyclic", 2)):
        with pytest.raises(ValueError, match="the patterns are"):
            uses_of(pattern, pages, 4)
    assert PATTERNS == ("cyclic", "skewed", "looping")


def test_a_trial_takes_a_students_policy(answers: dict[str, Any]) -> None:
    uses = uses_of("skewed", 8, 40)
    yours, ours = try_pool(uses, 4, answers["Clock"]()), try_pool(uses, 4, "clock")
    assert yours.statistics == ours.statistics and str(yours) == str(ours) and "0 hazards" in str(ours)


@pytest.mark.cuda
def test_a_trial_runs_on_a_gpu_too() -> None:
    from xinfer_lab.device.cuda import CudaDevice

    trial = try_pool(ALL_USES, 8, "clock", sizes=ALL_SIZES, written={2, 3}, device=CudaDevice(measure=True))
    assert trial.hazards == 0 and trial.timeline.duration > 0
