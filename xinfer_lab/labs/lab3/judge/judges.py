"""Lab 3: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION, choice
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab3.judge.hiding import LAYER_OF, PASS_TIMES, SLOT_OF, TOKENS_TO_HIDE
from xinfer_lab.labs.lab3.judge.ring import ENSURE, GATE, PREFETCH, PREFETCH_AHEAD, RELEASE, WAIT_UNTIL_READ

__all__ = ["JUDGES"]

JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab3.predict_wrap": PREDICTION,
    "lab3.layer_of": LAYER_OF,
    "lab3.slot_of": SLOT_OF,
    "lab3.explain_wrap": choice(
        "C",
        {
            "A": "With two slots uploads run two steps ahead, into the next pass as well.",
            "B": "The number of slots changes no fence; with an odd number of layers two slots fail too.",
            "D": "Two slots have as little room as they have: an odd number of layers shows it.",
        },
    ),
    "lab3.ensure": ENSURE,
    "lab3.predict_read": PREDICTION,
    "lab3.wait_until_read": WAIT_UNTIL_READ,
    "lab3.prefetch": PREFETCH,
    "lab3.prefetch_ahead": PREFETCH_AHEAD,
    "lab3.release": RELEASE,
    "lab3.predict_gain": PREDICTION,
    "lab3.pass_times": PASS_TIMES,
    "lab3.tokens_to_hide": TOKENS_TO_HIDE,
    "lab3.explain_hiding": choice(
        "B",
        {
            "A": "The 72B layer's copy does take longer, but so does its computing, by the same factor.",
            "C": "A layer's FLOPs grow with its weights: 2 for each weight and token.",
            "D": "The link is as fast for one model as for the other; that alone would favour the smaller layer.",
        },
    ),
    "lab3.gate": GATE,
}
