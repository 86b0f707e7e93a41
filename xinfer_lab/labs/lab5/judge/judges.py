"""Lab 5: the judges of its pieces."""

from __future__ import annotations

from xinfer_lab.grading.choices import PREDICTION
from xinfer_lab.grading.programs.verify_program import ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab5.judge.article import EXPLAIN_ARTICLE
from xinfer_lab.labs.lab5.judge.clock import CLOCK, CLOCK_PINS
from xinfer_lab.labs.lab5.judge.pool import JUDGES as POOL_JUDGES
from xinfer_lab.labs.lab5.judge.scan import BEST_HITS, EXPLAIN_SCAN, LRU_HITS
from xinfer_lab.labs.lab5.judge.table import TABLE, TABLE_REFUSES

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
