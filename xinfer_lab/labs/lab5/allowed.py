"""What an answer of Lab 5 may import besides Python's own modules, NumPy and torch."""

from __future__ import annotations

__all__ = ["ALLOWED"]

ALLOWED = (
    "xinfer_lab.device",
    "xinfer_lab.grading.check",
    "xinfer_lab.grading.guess",
    "xinfer_lab.labs.lab5.given",
    "xinfer_lab.labs.lab5.mixture_case",
    "xinfer_lab.labs.lab5.page_trial",
    "xinfer_lab.labs.lab5.pages",
    "xinfer_lab.labs.lab5.parts_trial",
    "xinfer_lab.paging.errors",
    "xinfer_lab.residency",
    "xinfer_lab.views",
    "zlib",
)
