"""What of Lab 5 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

_TABLE = ("free_frame()", "bind(page, frame)", "arrive(page)", "pin(page)", "unpin(page)", "unbind(page)")
_CLOCK = ("()", "placed(page)", "used(page)", "removed(page)", "choose(may_go, incoming)")

KEPT = (
    Part("page_table", "PageTable", ("lab5.table", "lab5.table_refuses"), "says which page is in which frame", _TABLE),
    Part("page_clock", "Clock", ("lab5.clock", "lab5.clock_pins"), "says which page goes", _CLOCK),
    Part("page_prefetch", "prefetch", ("lab5.prefetch",), "starts the copy of a page", ("(pool, page, ahead)",)),
    Part("page_acquire", "acquire", ("lab5.acquire",), "lets the direct queue use a page", ("(pool, page, write)",)),
    Part("page_release", "release", ("lab5.release",), "notes when a page's last use is over", ("(pool, page)",)),
    Part(
        "page_evict",
        "evict",
        ("lab5.evict", "lab5.write_back"),
        "brings a written page home, and frees its frame",
        ("(pool, page)",),
    ),
)
