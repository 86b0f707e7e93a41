"""Lab 4: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.programs.verify import ProgramJudge
from xinfer_lab.grading.truth.choices import PREDICTION, choice
from xinfer_lab.grading.truth.lab4_clinic import CLINIC
from xinfer_lab.grading.truth.lab4_ring import ENSURE_FENCE, ENSURE_STATE, GATE
from xinfer_lab.grading.truth.lab4_tables import EXPLAIN_STATES, PREDICT_STATES
from xinfer_lab.grading.verify import Judge

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
