"""Lab 1: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION, choice
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab1.judge.decision import DECIDE, REFUSE_BUDGET
from xinfer_lab.labs.lab1.judge.files import LAYERS, RANGES, REFUSE_RANGES
from xinfer_lab.labs.lab1.judge.gate import GATE
from xinfer_lab.labs.lab1.judge.header import HEADER, REFUSE_HEADER
from xinfer_lab.labs.lab1.judge.sizes import KV_CACHE, LAYER, MODEL

__all__ = ["JUDGES"]


JUDGES: dict[str, Judge] = {
    "lab1.predict_embedding": PREDICTION,
    "lab1.layer_bytes": LAYER,
    "lab1.model_bytes": MODEL,
    "lab1.predict_cache": PREDICTION,
    "lab1.kv_cache_bytes": KV_CACHE,
    "lab1.explain_cache": choice(
        "C",
        {
            "A": "A head is 128 numbers wide in both models.",
            "B": "Both caches are kept in bfloat16.",
            "D": "The vocabulary has no part in the cache.",
        },
    ),
    "lab1.read_header": HEADER,
    "lab1.refuse_header": REFUSE_HEADER,
    "lab1.tensor_ranges": RANGES,
    "lab1.refuse_ranges": REFUSE_RANGES,
    "lab1.layer_table": LAYERS,
    "lab1.predict_pool": PREDICTION,
    "lab1.decide_residency": DECIDE,
    "lab1.refuse_budget": REFUSE_BUDGET,
    "lab1.gate": GATE,
    "lab1.explain_pool": choice(
        "B",
        {
            "A": "A slot takes as many bytes as any other; the budget does not choose.",
            "C": "The link is as fast for a pool of 27 as for one of 2.",
            "D": "The compute of a layer does not depend on where its weights came from.",
        },
    ),
}
