"""What of Lab 3 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

KEPT = (
    Part("layer_of", "layer_of", ("lab3.layer_of",), "says which layer a step computes", ("(step, layers)",)),
    Part("slot_of", "slot_of", ("lab3.slot_of",), "says which slot a step uses", ("(step, layers, pool)",)),
    Part("ensure", "ensure", ("lab3.ensure",), "waits for a slot's copy", ("(ring, layer)",)),
    Part(
        "wait_until_read",
        "wait_until_read",
        ("lab3.wait_until_read",),
        "waits for a slot's last reader",
        ("(ring, step)",),
    ),
    Part(
        "prefetch",
        "prefetch",
        ("lab3.prefetch", "lab3.prefetch_ahead"),
        "uploads ahead, as far as there are slots",
        ("(ring)",),
    ),
    Part("release", "release", ("lab3.release",), "ends a step: signal, count, refill", ("(ring, layer)",)),
)
