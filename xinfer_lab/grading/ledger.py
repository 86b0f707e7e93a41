"""The ledger of rules: each rule of a lab's text has a name that text, judge and bank share.

* The text has it in the instructor's notebook: a cell's metadata ``rules`` maps a piece to the names of the rules that
  the cell states, each with the words that state it. The release takes these metadata away.
* A judge of values has it as the ``rule`` of a `WrongModel`, which is what breaking this rule alone would answer; or in
  ``besides``, for a rule that shows in how the answer went about it.
* A judge of programs has it in ``named``: which rule is broken by a fault of which kind.
* The bank has it in the header of an answer that breaks it alone: ``rule: refuse_header.limit``.

`tools/bank.py --rules` prints them side by side, and a test finds what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.grading.envelope import read_outcomes
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.verify_program import ProgramJudge, first_fault, read_evidence
from xinfer_lab.grading.verify_values import Judge, Refuses, WrongModel, explaining

__all__ = ["broken_rules", "deciding_cases", "rules_of"]


def rules_of(piece: str) -> tuple[str, ...]:
    """The names of the rules that the judge of ``piece`` looks at."""
    judge: Judge | ProgramJudge = judge_of(piece)
    return judge.told if isinstance(judge, ProgramJudge) else judge.rules


def broken_rules(piece: str, cases: Sequence[Case], data: object) -> set[str]:
    """The rules that a recording breaks, as the judge of ``piece`` tells: of each wrong case the first. Empty where the
    judge can name none."""
    judge: Judge | ProgramJudge = judge_of(piece)
    if isinstance(judge, ProgramJudge):
        outcomes, _ = read_outcomes(piece, cases, data)
        found = [read_evidence(judge, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)]
        faults = [fault for evidence in found if (fault := first_fault(judge, evidence)) is not None]
        return {judge.rule_of(fault.kind) for fault in faults}
    return explaining(piece, judge, cases, data)


def deciding_cases(piece: str, rule: str, cases: Sequence[Case]) -> list[Case] | None:
    """Those of ``cases`` in which ``rule`` alone decides: breaking it and keeping all others is wrong there.

    None where that cannot be told without an answer: of a program, and of a rule that shows in how one went about it.
    """
    judge = judge_of(piece)
    if isinstance(judge, ProgramJudge):
        return None
    breaking = [idea for idea in judge.wrong if idea.rule == rule and idea.model is not None]
    if not breaking:
        return None
    return [case for case in cases if any(_decides(judge, idea, case) for idea in breaking)]


def _decides(judge: Judge, idea: WrongModel, case: Case) -> bool:
    """Whether what ``idea`` answers is wrong here."""
    assert idea.model is not None
    truth, given = judge.truth(case.inputs), idea.model(case.inputs)
    if isinstance(truth, Refuses) or isinstance(given, Refuses):
        if not (isinstance(truth, Refuses) and isinstance(given, Refuses)):
            return True
        return truth.type != given.type or (None not in (truth.args, given.args) and truth.args != given.args)
    return truth != given if judge.compare is None else judge.compare(truth, given, judge.noun) is not None
