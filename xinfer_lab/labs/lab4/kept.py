"""What of Lab 4 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

KEPT = (
    Part(
        "streaming_layers",
        "StreamingLayers",
        ("lab4.gate",),
        "streams through N slots, and keeps account of states",
        ("(device, layout, dtype, host, layers, pool)", "begin(steps)", "ensure(layer)", "release(layer)", "close()"),
    ),
)
