"""The rules that hold for every run of a page pool in Lab 5, for a single function of it and for the gate."""

from __future__ import annotations

from xinfer_lab.labs.lab5.judge import page_races as races
from xinfer_lab.labs.lab5.judge import page_rules as pages
from xinfer_lab.labs.lab5.judge import page_signals as signals

__all__ = ["MOVES", "WAITS"]

MOVES = (
    pages.pages_move_whole,
    pages.no_page_in_use_leaves,
    pages.refuses_right,
    pages.acquires_right,
    pages.dirty_pages_go_home,
)
"""What is moved, bound and refused."""
WAITS = (
    races.host_never_blocks_for_pages,
    races.no_race,
    pages.submits_nothing_for_what_is_there,
    signals.submits_nothing_for_clean_pages,
    pages.one_wait_for_a_page,
    signals.signals_once,
    signals.waits_for_signals,
    pages.fetched_ahead,
    pages.waits_for_no_more,
)
"""Who waits for what, and signals what; the first two before any other is looked at."""
