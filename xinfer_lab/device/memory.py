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
        self._workspace = 0
        self._used = 0
        self._peak = 0

    def check(self, holder: str, size: int) -> None:
        """Raise `OutOfDeviceMemory` if ``size`` bytes more do not fit. Counts nothing."""
        if self.budget is not None and self._used + size > self.budget:
            raise OutOfDeviceMemory(holder, size, self._used, self.budget, self.use().holders)

    def take(self, holder: str, size: int) -> None:
        """Count ``size`` bytes for ``holder``. Raises `OutOfDeviceMemory` and counts nothing if they do not fit."""
        self.check(holder, size)
        self._holders[holder] = self._holders.get(holder, 0) + size
        self._count(size)

    def give_back(self, holder: str) -> None:
        """Count nothing for ``holder`` any more."""
        self._count(-self._holders.pop(holder, 0))

    def check_workspace(self, size: int) -> None:
        """Raise `OutOfDeviceMemory` if kernel workspace cannot grow to ``size`` bytes. Counts nothing."""
        if size > self._workspace:
            self.check(WORKSPACE, size - self._workspace)

    def reserve_workspace(self, size: int) -> None:
        """Make sure that at least ``size`` bytes are counted as kernel workspace. Raises `OutOfDeviceMemory`."""
        self.check_workspace(size)
        if (missing := size - self._workspace) > 0:
            self._workspace = size
            self._count(missing)

    def clear(self) -> None:
        """Count nothing any more; the peak stays."""
        self._holders.clear()
        self._workspace = self._used = 0

    def _count(self, change: int) -> None:
        self._used += change
        self._peak = max(self._peak, self._used)

    def use(self) -> MemoryUse:
        """A snapshot."""
        holders = dict(self._holders)
        if self._workspace:
            # Kept apart from the buffers, one of which may have the same name.
            holders[WORKSPACE] = holders.get(WORKSPACE, 0) + self._workspace
        return MemoryUse(self._used, self._peak, self.budget, holders)
