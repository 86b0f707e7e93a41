"""What can go wrong with a residency, beyond what the device says."""

from __future__ import annotations

__all__ = ["LayerOrderError", "RequestError"]


class LayerOrderError(RuntimeError):
    """Layers were asked for or released in another order than 0, 1, ..., L-1 of each announced pass."""


class RequestError(ValueError):
    """A request that the model cannot serve: token ids out of range, a context that is too long, a bad pool size."""
