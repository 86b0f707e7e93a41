"""Which page lies in which frame, and back; states and pins."""

from dataclasses import dataclass

from xinfer_lab.paging.errors import PageError

__all__ = ["PageTable"]


@dataclass
class Entry:
    """What is known of one page."""

    state: str = "IN_HOST"
    frame: int | None = None
    pins: int = 0
    dirty: bool = False


class PageTable:
    """See Lab 5."""

    def __init__(self, pages: int, frames: int) -> None:
        self._entries = [Entry() for _ in range(pages)]
        self._owners: list[int | None] = [None] * frames

    def state(self, page: int) -> str:
        """IN_HOST, MIGRATING or IN_DEVICE."""
        return self._entries[page].state

    def frame_of(self, page: int) -> int | None:
        """The frame that ``page`` lies in; None if it has none."""
        return self._entries[page].frame

    def page_in(self, frame: int) -> int | None:
        """The page that lies in ``frame``; None if it is free."""
        return self._owners[frame]

    def pins(self, page: int) -> int:
        """How many users ``page`` has."""
        return self._entries[page].pins

    def is_dirty(self, page: int) -> bool:
        """Whether the device's bytes differ from those at home."""
        return self._entries[page].dirty

    def mark_dirty(self, page: int) -> None:
        """``page`` is going to be written by who has it."""
        if not self.pins(page):
            raise PageError(f"page {page} is written by nobody: nobody has acquired it")
        self._entries[page].dirty = True

    def mark_clean(self, page: int) -> None:
        """The copy of ``page`` back home was submitted."""
        self._entries[page].dirty = False

    def free_frame(self) -> int | None:
        """The lowest frame that no page owns; None if there is none."""
        return next((frame for frame, owner in enumerate(self._owners) if owner is None), None)

    def bind(self, page: int, frame: int) -> None:
        """``page`` owns ``frame`` and is on its way there."""
        if self.frame_of(page) is not None or self.page_in(frame) is not None:
            raise PageError(f"page {page} cannot be bound to frame {frame}")
        entry = self._entries[page]
        entry.state, entry.frame = "MIGRATING", frame
        self._owners[frame] = page

    def arrive(self, page: int) -> None:
        """Every use of ``page`` from now on comes after its copy."""
        if self.state(page) != "MIGRATING":
            raise PageError(f"page {page} is not on its way, but {self.state(page)}")
        self._entries[page].state = "IN_DEVICE"

    def pin(self, page: int) -> None:
        """One user more."""
        if self.state(page) != "IN_DEVICE":
            raise PageError(f"page {page} cannot be used: it is {self.state(page)}")
        self._entries[page].pins += 1

    def unpin(self, page: int) -> None:
        """One user less."""
        if not self.pins(page):
            raise PageError(f"page {page} was released once too often")
        self._entries[page].pins -= 1

    def unbind(self, page: int) -> int:
        """``page`` gives its frame up; returns the frame."""
        frame = self.frame_of(page)
        if frame is None or self.pins(page) or self.is_dirty(page):
            raise PageError(f"page {page} cannot leave: in frame {frame}, {self.pins(page)} users")
        entry = self._entries[page]
        entry.state, entry.frame = "IN_HOST", None
        self._owners[frame] = None
        return frame
