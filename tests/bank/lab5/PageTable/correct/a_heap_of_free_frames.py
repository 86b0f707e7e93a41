"""
note: free frames in a heap, from which taken ones are dropped late
"""

from heapq import heappop, heappush


class PageTable(Entries):
    def __init__(self, pages, frames):
        super().__init__(pages, frames)
        self.free = list(range(frames))

    def free_frame(self):
        while self.free and self.owners[self.free[0]] is not None:
            heappop(self.free)
        return self.free[0] if self.free else None

    def bind(self, page, frame):
        entry = self.entries[page]
        if entry.frame is not None or self.owners[frame] is not None:
            raise PageError(f"page {page} cannot be bound to frame {frame}")
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page

    def arrive(self, page):
        if self.entries[page].state != "MIGRATING":
            raise PageError(f"page {page} is not on its way")
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        if self.entries[page].state != "IN_DEVICE":
            raise PageError(f"page {page} cannot be used")
        self.entries[page].pins += 1

    def unpin(self, page):
        if not self.entries[page].pins:
            raise PageError(f"page {page} is released once too often")
        self.entries[page].pins -= 1

    def unbind(self, page):
        entry = self.entries[page]
        if entry.frame is None or entry.pins or entry.dirty:
            raise PageError(f"page {page} cannot leave")
        frame = entry.frame
        entry.state, entry.frame = "IN_HOST", None
        self.owners[frame] = None
        heappush(self.free, frame)
        return frame
