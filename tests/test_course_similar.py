"""Which submissions are alike: renaming and comments hide nothing, and what all have says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.classes import LAB, SmallClass, remembered
from tests.command_line import invoke, refused
from tests.marking import hand_in, notebook
from xinfer_lab.course.mark_submission import stream_digest
from xinfer_lab.course.similar import Work, alike, fingerprints

ANSWER = '''
def layer_table(config, pool):
    """All rows."""
    rows = []
    for index in range(config.layers):
        size = sum(part.bytes for part in config.parts(index))
        if size > pool:
            rows.append((index, size, "streamed"))
        else:
            rows.append((index, size, "resident"))
    return sorted(rows, key=lambda row: -row[1])
'''
RENAMED = """
def layer_table(cfg, room):
    # mine, all mine
    out = []
    for i in range(cfg.layers):
        n = sum(p.bytes for p in cfg.parts(i))

        if n > room:
            out.append((i, n, "from the host"))
        else:
            out.append((i, n, "here"))
    return sorted(out, key=lambda r: -r[1])
"""
OTHER = """
def layer_table(config, pool):
    sizes = {i: config.layer_bytes(i) for i in range(config.layers)}
    order = list(sizes)
    order.sort(key=sizes.get, reverse=True)
    return [(i, sizes[i], "resident" if sizes[i] <= pool else "streamed") for i in order]
"""


def work(student: str, source: str, **more: object) -> Work:
    return Work(student, {"layer-table": fingerprints(source)}, **more)


def test_renaming_comments_and_texts_hide_nothing() -> None:
    assert fingerprints(ANSWER) == fingerprints(RENAMED) and len(fingerprints(ANSWER)) > 10
    assert not fingerprints(ANSWER) & fingerprints(OTHER)


@given(st.text(max_size=200))
def test_whatever_a_cell_holds_is_compared_or_passed_over(source: str) -> None:
    fingerprints(source)


def test_two_who_are_alike_are_found_and_nobody_else() -> None:
    (pair,) = alike([work("ada", ANSWER), work("bob", RENAMED), work("eve", OTHER)])
    assert (pair.students, pair.share, pair.gaps) == (("ada", "bob"), 1.0, ("layer-table",))


def test_what_many_have_says_nothing() -> None:
    assert alike([work(f"student-{number}", ANSWER) for number in range(20)]) == []


def test_the_same_rare_comment_or_commands_are_told() -> None:
    class_of = [work(f"student-{number}", OTHER, streams={"a": "common", "b": "common"}) for number in range(18)]
    ours = {"comments": frozenset({"the pool holds one more layer"}), "streams": {"a": "x", "b": "y"}}
    (pair,) = alike([*class_of, work("ada", OTHER, **ours), work("bob", OTHER, **ours)])
    assert pair.students == ("ada", "bob") and pair.streams == ("a", "b") and len(pair.comments) == 1


def test_a_digest_is_that_of_the_commands_and_not_of_the_lines_that_issued_them() -> None:
    def data(line: int, fence: str) -> dict:
        return {"outcomes": [{"stream": [{"kind": "signal", "fence": fence, "where": f"cell.py:{line}"}]}]}

    assert stream_digest(data(1, "copied")) == stream_digest(data(7, "copied")) != ""
    assert stream_digest(data(1, "copied")) != stream_digest(data(1, "done"))
    assert stream_digest({"outcomes": [3]}) == ""


@pytest.mark.slow
def test_the_command_names_pairs_and_says_that_it_is_no_proof(tmp_path_factory: pytest.TempPathFactory) -> None:
    course = SmallClass(tmp_path_factory.mktemp("class"))
    assert "fewer than two submissions" in refused(invoke("similar", LAB, "--root", course.root))
    for student, text in (("ada", ANSWER), ("bob", RENAMED), ("eve", OTHER)):
        course.submit(student, notebook(hand_in(own={"setup": text})))
    with remembered() as worker:
        course.mark(worker)
    said = invoke("similar", LAB, "--root", course.root)
    assert said.exit_code == 0 and "ada and bob" in said.stdout and "eve" not in said.stdout
    assert "Evidence, not proof" in said.stdout
