"""The ledger of rules: text, judge, cases and bank name the same ones, and none is without the others."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from tests.answer_bank import SOURCES, Answer, answers, run
from xinfer_lab.course.clear_answers import RULES
from xinfer_lab.grading import find_piece, pieces_of
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.ledger import broken_rules, deciding_cases, rules_of
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge

ALL = "*"
"""In place of a piece: a rule that a lab states once for all its pieces."""


@cache
def texts(lab: str) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Piece -> rule -> the cells that state it and the words, by the metadata of the instructor's notebook."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in json.loads(SOURCES[lab].read_text(encoding="utf-8"))["cells"]:
        for piece, rules in cell["metadata"].get(RULES, {}).items():
            for rule, words in rules.items():
                assert words in "".join(cell["source"]), f"{cell['id']} does not say {words!r}"
                found[piece][rule].append((cell["id"], words))
    return found


def ledgered(lab: str) -> list[str]:
    """The pieces of ``lab`` with rules: all but predictions, choices and what is judged as a whole."""
    return [piece.name for piece in pieces_of(lab) if rules_of(piece.name)]


LABS = [lab for lab in SOURCES if texts(lab)]
PIECES = [piece for lab in LABS for piece in ledgered(lab)]


def test_no_lab_is_left_out() -> None:
    assert list(SOURCES) == LABS


@pytest.mark.parametrize("lab", LABS)
def test_every_piece_that_is_a_program_or_a_function_has_rules(lab: str) -> None:
    without = {piece.name for piece in pieces_of(lab) if piece.name not in ledgered(lab)}
    asked = {name for name in without if not name.partition(".")[2].startswith(("predict", "explain"))}
    assert asked <= {f"{lab}.gate"}, "its parts have them"


@pytest.mark.parametrize("piece", PIECES)
def test_the_text_states_each_rule_of_the_judge_and_no_other(piece: str) -> None:
    lab = piece.partition(".")[0]
    own, everywhere = set(texts(lab).get(piece, {})), set(texts(lab).get(ALL, {}))
    rules = set(rules_of(piece))
    assert rules - own - everywhere == set(), "rules that no text states"
    assert own - rules == set(), "rules that nothing checks"


@pytest.mark.parametrize("lab", LABS)
def test_a_rule_for_all_pieces_is_looked_at_by_one_of_them(lab: str) -> None:
    assert set(texts(lab).get(ALL, {})) <= {rule for piece in ledgered(lab) for rule in rules_of(piece)}


@pytest.mark.parametrize("piece", PIECES)
def test_the_bank_has_an_answer_that_breaks_each_rule_alone(piece: str) -> None:
    banked = {answer.rule for answer in answers("wrong") if answer.rule.startswith(f"{piece}.")}
    missing = [rule for rule in rules_of(piece) if f"{piece}.{rule}" not in banked and not _elsewhere(piece, rule)]
    assert not missing
    assert banked <= {f"{piece}.{rule}" for rule in rules_of(piece)}


def _elsewhere(piece: str, rule: str) -> bool:
    """Whether another piece of the same answer has the rule with an answer in the bank: one breaks both."""
    lab = piece.partition(".")[0]
    others = [other for other in ledgered(lab) if other != piece and rule in rules_of(other)]
    return any(answer.rule == f"{other}.{rule}" for other in others for answer in answers("wrong"))


@pytest.mark.parametrize("piece", [piece for piece in PIECES if isinstance(judge_of(piece), Judge)])
def test_some_case_of_every_seed_is_decided_by_each_rule_alone(piece: str) -> None:
    for seed in range(5):
        cases = find_piece(piece).draw(seed)
        for rule in rules_of(piece):
            deciding = deciding_cases(piece, rule, cases)
            assert deciding is None or deciding, f"{rule}, seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("answer", [one for one in answers("wrong") if one.rule], ids=lambda one: one.name)
def test_a_banked_answer_breaks_its_rule_and_no_other(answer: Answer) -> None:
    piece, rule = answer.rule.rpartition(".")[::2]
    cases = find_piece(piece).draw(0)
    data = find_piece(piece).record(run(answer)[answer.function], cases)
    broken = broken_rules(piece, cases, json.loads(json.dumps(data)))
    if isinstance(judge_of(piece), ProgramJudge):
        assert broken == {rule}
    elif deciding_cases(piece, rule, cases) is not None:
        assert rule in broken or not broken, "no idea explains it, or another one does"


@pytest.mark.parametrize("piece", PIECES)
def test_a_rule_without_a_model_of_breaking_it_is_named_as_one(piece: str) -> None:
    judge = judge_of(piece)
    if isinstance(judge, Judge):
        modelled = {idea.rule for idea in judge.wrong if idea.model is not None or idea.pattern is not None}
        assert set(judge.rules) == modelled - {""} | set(judge.besides)
