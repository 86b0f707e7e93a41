"""The device memory budget: who holds what, and the peak."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.errors import OutOfDeviceMemory

__all__ = ["WORKSPACE", "MemoryBudget", "MemoryUse"]

WORKSPACE = "kernel workspace"
"""The holder under which the largest workspace of any kernel so far is counted: kernels run one after another."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A snapshot, in bytes: ``used`` now, ``peak`` so far, ``budget`` (None: unlimited), ``holders`` by buffer name."""

    used: int
    peak: int
    budget: int | None
    holders: dict[str, int]


class MemoryBudget:
    """Counts default-heap buffers and kernel workspace against ``budget`` bytes (None: unlimited)."""

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and budget <= 0:
            raise ValueError(f"a memory budget is a positive number of bytes, not {budget}")
        self.budget = budget
        self._holders: dict[str, int] = {}
        self._used = 0
        self._peak = 0

    def check(self, holder: str, size: int) -> None:
        """Raise `OutOfDeviceMemory` if ``size`` bytes more do not fit. Counts nothing."""
        if self.budget is not None and self._used + size > self.budget:
            raise OutOfDeviceMemory(holder, size, self._used, self.budget, self._holders)

    def take(self, holder: str, size: int) -> None:
        """Count ``size`` bytes for ``holder``. Raises `OutOfDeviceMemory` and counts nothing if they do not fit."""
        self.check(holder, size)
        self._holders[holder] = self._holders.get(holder, 0) + size
        self._used += size
        self._peak = max(self._peak, self._used)

    def give_back(self, holder: str) -> None:
        """``holder`` holds nothing any more."""
        self._used -= self._holders.pop(holder, 0)

    def reserve_workspace(self, size: int) -> None:
        """Make sure that at least ``size`` bytes are counted as kernel workspace. Raises `OutOfDeviceMemory`."""
        missing = size - self._holders.get(WORKSPACE, 0)
        if missing > 0:
            self.take(WORKSPACE, missing)

    def use(self) -> MemoryUse:
        """A snapshot."""
        return MemoryUse(self._used, self._peak, self.budget, dict(self._holders))
