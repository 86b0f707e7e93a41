"""Every small change to a reference answer is noticed by one of its checks, or listed with the reason why it changes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.answer_bank import checks_of, concerned, functions_of, given_and_answers
from tests.answer_mutants import Mutant, mutants
from xinfer_lab.grading import examine

LABS = ("lab3",)
ASKED = [(lab, function) for lab in LABS for function in sorted(functions_of(lab))]

EQUIVALENT: dict[tuple[str, str, str], str] = {}
"""(lab, function, change) -> why no check can tell the mutant from the answer."""


def cells_of(lab: str, function: str) -> tuple[list[tuple[str, str]], int]:
    """The lab's given cells and answers, and the place of the one that defines ``function``."""
    cells = list(given_and_answers(lab))
    return cells, next(i for i, (_, text) in enumerate(cells) if re.search(rf"^def {function}\(", text, re.MULTILINE))


def noticed(lab: str, function: str, cells: list[tuple[str, str]], place: int, mutant: Mutant) -> bool:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (name, text) in enumerate(cells):
        exec(compile(mutant.source if number == place else text, f"<{name}>", "exec"), names)
    return any(not examine(check, names[checks_of(lab)[check]]).passed for check in concerned(lab, function))


@pytest.mark.parametrize(("lab", "function"), ASKED)
def test_every_mutant_of_an_answer_is_noticed_or_known_to_be_equivalent(lab: str, function: str) -> None:
    cells, place = cells_of(lab, function)
    made = mutants(cells[place][1], function)
    survivors = {str(mutant) for mutant in made if not noticed(lab, function, cells, place, mutant)}
    known = {change for key, name, change in EQUIVALENT if (key, name) == (lab, function)}
    assert made and survivors == known
