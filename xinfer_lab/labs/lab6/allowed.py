"""What an answer of Lab 6 may import besides Python's own modules, NumPy and torch."""

from __future__ import annotations

__all__ = ["ALLOWED", "HIDDEN"]

ALLOWED = (
    "xinfer_lab.device",
    "xinfer_lab.grading.check",
    "xinfer_lab.grading.guess",
    "xinfer_lab.labs.lab6.given",
    "xinfer_lab.qwen2",
    "xinfer_lab.residency",
    "xinfer_lab.views",
)

HIDDEN = ("xinfer_lab.paging.belady",)
"""Not on disk where an answer is recorded, whatever gets around the list: Belady's rule finds the layer to give up."""
