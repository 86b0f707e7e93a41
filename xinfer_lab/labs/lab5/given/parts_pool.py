"""`PartsPool`: a page pool that decides nothing. Its table, its policy and what it submits are parts put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source, Span
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.grading.numbers import plain_scalar, whole

__all__ = ["PartsPool"]

Part = Callable[..., Any]


class PartsPool:
    """``frames`` frames of device memory, and pinned host memory that is the home of ``pages`` pages; a page and a
    frame have ``page_bytes`` bytes. Both are allocated once.

    ``table`` says which page lies in which frame, ``policy`` which one leaves. The fences: ``arrived`` is signalled by
    the copy queue, behind copies to the device; ``released`` by the direct queue, behind what uses pages; ``saved`` by
    the write-back queue, behind copies home. Fence values that somebody may have to wait for, 0 at first:

    * ``ready[page]``, of ``arrived``: the page's newest copy to the device is there;
    * ``last_use[frame]``, of ``released``: the direct queue is done with what lies in the frame;
    * ``emptied[frame]``, of ``saved``: what lay in the frame is home;
    * ``returned[page]``, of ``saved``: the page's own bytes are home.

    ``parts``: ``PageTable`` and ``Clock``, classes, and the functions ``prefetch``, ``acquire``, ``release`` and
    ``evict``, whose first argument is the pool. Nothing here blocks the host, `close` aside.
    """

    def __init__(
        self, device: Device, *, frames: int, pages: int, page_bytes: int, parts: Mapping[str, Part], name: str = "pool"
    ) -> None:
        self.device, self.page_bytes, self.frames, self.pages = device, page_bytes, frames, pages
        self._parts = parts
        self.table = parts["PageTable"](pages, frames)
        self.policy = parts["Clock"]()
        with all_or_nothing(device):
            self.buffer = device.create_buffer(frames * page_bytes, name)
            self._heap = device.create_host_heap(pages * page_bytes, f"{name}.home")
        self.arrived, self.released, self.saved = (
            device.create_fence(device.fresh_name(fence)) for fence in ("arrived", "released", "saved")
        )
        self.ready, self.returned = [0] * pages, [0] * pages
        self.last_use, self.emptied = [0] * frames, [0] * frames

    def span(self, frame: int) -> Span:
        """The bytes of ``frame``, on the device."""
        return self.buffer.span(frame * self.page_bytes, self.page_bytes)

    def home(self, page: int) -> Span:
        """The bytes of ``page`` at home, in host memory."""
        return self._heap.span(page * self.page_bytes, self.page_bytes)

    def fill(self, page: int, source: str | Source, offset: int = 0) -> None:
        """Write ``source`` into the page at home, from byte ``offset`` on; nothing may copy from there meanwhile."""
        self._heap.write(page * self.page_bytes + offset, source)

    def read_home(self, page: int) -> torch.Tensor:
        """The page's bytes at home, 1-D uint8. The host must have waited for whatever writes there."""
        return self._heap.read("uint8", (self.page_bytes,), page * self.page_bytes)

    def make_room(self, ahead: bool) -> int | None:
        """A frame that nobody owns: a free one, or else that of the page that the policy chooses, which is evicted.

        None where no page may go: one that is acquired never may, and with ``ahead`` (whoever asks does not need the
        frame now) neither may one that is still on its way.
        """

        def may_go(page: int) -> bool:
            return not self.table.pins(page) and not (ahead and self.table.state(page) == "MIGRATING")

        frame: int | None = self.table.free_frame()
        if frame is None and (victim := self.policy.choose(may_go)) is not None:
            frame = self.evict(victim)
        return frame

    # The parts

    def prefetch(self, page: int, ahead: bool = True) -> bool:
        """Start the copy of ``page`` to the device; whether it is there or on its way now."""
        given = self._parts["prefetch"](self, page, ahead)
        if (coming := plain_scalar(given)) is None:
            raise TypeError(f"prefetch has to return True or False, but returned {given!r}")
        return bool(coming)

    def acquire(self, page: int, write: bool = False) -> int:
        """From here on the direct queue may use ``page``, until `release`; the frame that it lies in."""
        given = self._parts["acquire"](self, page, write)
        if (frame := whole(given)) is None:
            raise TypeError(f"acquire has to return the page's frame, an int, but returned {given!r}")
        return frame

    def release(self, page: int) -> None:
        """The direct queue has been given its last command on ``page``, for now."""
        self._parts["release"](self, page)

    def evict(self, page: int) -> int:
        """``page`` gives its frame up, and goes home first if it is dirty; the frame."""
        given = self._parts["evict"](self, page)
        if (frame := whole(given)) is None:
            raise TypeError(f"evict has to return the frame that is free now, an int, but returned {given!r}")
        return frame

    def settle(self) -> None:
        """Block the host until nothing that these fences count is in flight."""
        for fence in (self.arrived, self.released, self.saved):
            if fence.last_submitted:
                fence.wait(fence.last_submitted)

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back."""
        self.settle()
        self.buffer.free()
        self._heap.free()
