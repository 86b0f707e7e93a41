"""What of Lab 2 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

_RING = ("lab2.ring_alignment", "lab2.ring_wrap", "lab2.ring_wait", "lab2.ring_refuse")

KEPT = (
    Part(
        "staging_ring",
        "StagingRing",
        _RING,
        "hands out pinned staging memory",
        ("(device, size)", "allocate(size)", "retire(fence, value)", "close()"),
    ),
    Part(
        "copy_engine",
        "CopyEngine",
        ("lab2.upload", "lab2.upload_async"),
        "uploads layers on the copy queue",
        ("(device, ring, layout)", "upload(layer, slot)", "close()"),
    ),
    Part(
        "serial_layers",
        "SerialLayers",
        ("lab2.serial",),
        "streams through one slot, without overlap",
        ("(device, engine, slot, layers)", "ensure(layer)", "release(layer)", "close()"),
    ),
)
