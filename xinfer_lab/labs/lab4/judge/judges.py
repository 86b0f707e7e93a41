"""Lab 4: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION, choice
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab4.judge.clinic import CLINIC
from xinfer_lab.labs.lab4.judge.ring import ENSURE_FENCE, ENSURE_STATE, GATE
from xinfer_lab.labs.lab4.judge.tables import EXPLAIN_STATES, PREDICT_STATES

__all__ = ["JUDGES"]

JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab4.predict_states": PREDICT_STATES,
    "lab4.explain_states": EXPLAIN_STATES,
    "lab4.predict_stale": PREDICTION,
    "lab4.ensure_fence": ENSURE_FENCE,
    "lab4.ensure_state": ENSURE_STATE,
    "lab4.explain_order": choice(
        "B",
        {
            "A": "D3D12 knows nothing of the tracker, so it cannot refuse what the tracker is told.",
            "C": "assume_common() is bookkeeping of the host: it orders nothing on the device.",
            "D": "It is called at the same place in every step either way; no step is left out.",
        },
    ),
    **CLINIC,
    "lab4.gate": GATE,
}
