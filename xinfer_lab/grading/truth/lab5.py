"""Lab 5: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.programs.verify import ProgramJudge
from xinfer_lab.grading.truth.choices import PREDICTION
from xinfer_lab.grading.truth.lab5_article import EXPLAIN_ARTICLE
from xinfer_lab.grading.truth.lab5_clock import CLOCK, CLOCK_PINS
from xinfer_lab.grading.truth.lab5_pool import JUDGES as POOL_JUDGES
from xinfer_lab.grading.truth.lab5_scan import BEST_HITS, EXPLAIN_SCAN, LRU_HITS
from xinfer_lab.grading.truth.lab5_table import TABLE, TABLE_REFUSES
from xinfer_lab.grading.verify import Judge

__all__ = ["JUDGES"]

JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab5.predict_article": PREDICTION,
    "lab5.explain_article": EXPLAIN_ARTICLE,
    "lab5.table": TABLE,
    "lab5.table_refuses": TABLE_REFUSES,
    "lab5.clock": CLOCK,
    "lab5.clock_pins": CLOCK_PINS,
    "lab5.predict_scan": PREDICTION,
    "lab5.explain_scan": EXPLAIN_SCAN,
    "lab5.lru_hits": LRU_HITS,
    "lab5.best_hits": BEST_HITS,
    **POOL_JUDGES,
}
