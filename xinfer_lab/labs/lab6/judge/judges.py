"""Lab 6: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab6.judge.bound import BOUND
from xinfer_lab.labs.lab6.judge.claims import CLAIMS, SHARES
from xinfer_lab.labs.lab6.judge.decode import DECODE, DECODE_ESCAPES
from xinfer_lab.labs.lab6.judge.encode import ENCODE, ENCODE_ESCAPES
from xinfer_lab.labs.lab6.judge.fit import FIT
from xinfer_lab.labs.lab6.judge.race import BEAT, GATE
from xinfer_lab.labs.lab6.judge.stay import SPREAD, VICTIM

__all__ = ["JUDGES"]

JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab6.predict_claim": PREDICTION,
    "lab6.explain_claim": SHARES,
    "lab6.bound": BOUND,
    "lab6.predict_lru": PREDICTION,
    "lab6.victim": VICTIM,
    "lab6.spread": SPREAD,
    "lab6.fit": FIT,
    "lab6.gate": GATE,
    "lab6.beat_40": BEAT[40],
    "lab6.beat_70": BEAT[70],
    "lab6.beat_90": BEAT[90],
    "lab6.predict_bits": PREDICTION,
    "lab6.encode": ENCODE,
    "lab6.encode_escapes": ENCODE_ESCAPES,
    "lab6.decode": DECODE,
    "lab6.decode_escapes": DECODE_ESCAPES,
    "lab6.predict_claims": PREDICTION,
    "lab6.explain_claims": CLAIMS,
}
