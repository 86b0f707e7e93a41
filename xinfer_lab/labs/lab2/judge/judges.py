"""Lab 2: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION, choice
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab2.judge.refuse import REFUSE
from xinfer_lab.labs.lab2.judge.ring import ALIGNMENT, WAIT, WRAP
from xinfer_lab.labs.lab2.judge.serial import GATE, SERIAL
from xinfer_lab.labs.lab2.judge.upload import UPLOAD, UPLOAD_ASYNC

__all__ = ["JUDGES"]

JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab2.predict_copy": PREDICTION,
    "lab2.predict_early": PREDICTION,
    "lab2.explain_fence": choice(
        "B",
        {
            "A": "A fence takes as many waits as you like, from any queue and the host.",
            "C": "Both queues may wait for it; what matters is who signals.",
            "D": "Values are 64 bits wide: no program runs out of them.",
        },
    ),
    "lab2.predict_pinned": PREDICTION,
    "lab2.ring_alignment": ALIGNMENT,
    "lab2.ring_wrap": WRAP,
    "lab2.ring_wait": WAIT,
    "lab2.ring_refuse": REFUSE,
    "lab2.predict_tiny": PREDICTION,
    "lab2.upload": UPLOAD,
    "lab2.upload_async": UPLOAD_ASYNC,
    "lab2.serial": SERIAL,
    "lab2.predict_time": PREDICTION,
    "lab2.gate": GATE,
    "lab2.explain_time": choice(
        "C",
        {
            "A": "Both queues are there and both are used: look at the two rows.",
            "B": (
                "The host does wait in the ring, when that has no room. In a ring of six layers it would not, and the "
                "pass would take as long: look at the arrows between the two queues."
            ),
            "D": "On this GPU both take a millisecond; the sum would be a sum for any two times.",
        },
    ),
}
