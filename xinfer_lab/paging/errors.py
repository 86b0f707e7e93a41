"""Errors of a page pool, beyond those of the device."""

from __future__ import annotations

__all__ = ["HostPoolFull", "PageError", "PoolFull"]


class PageError(RuntimeError):
    """A page is used in an order that is never right: read before it was acquired, released more often than that."""


class PoolFull(RuntimeError):
    """No frames can be freed for what was asked for: too many pages are acquired, or no gap is long enough."""


class HostPoolFull(RuntimeError):
    """The host pool has no room for another extent."""
