"""
note: keeps the free frames apart, in order
"""

import bisect


class PageTable(Entries):
    def __init__(self, pages, frames):
        super().__init__(pages, frames)
        self.free = list(range(frames))

    def free_frame(self):
        return self.free[0] if self.free else None

    def bind(self, page, frame):
        if frame not in self.free or self.frame_of(page) is not None:
            raise PageError("taken")
        self.free.remove(frame)
        self.owners[frame] = page
        self.entries[page] = Entry("MIGRATING", frame, 0, self.is_dirty(page))

    def arrive(self, page):
        if self.state(page) in ("IN_HOST", "IN_DEVICE"):
            raise PageError("not on its way")
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        if self.state(page) in ("IN_HOST", "MIGRATING"):
            raise PageError("not there")
        self.entries[page].pins += 1

    def unpin(self, page):
        if self.pins(page) == 0:
            raise PageError("nobody has it")
        self.entries[page].pins -= 1

    def unbind(self, page):
        entry = self.entries[page]
        if entry.frame in self.free or entry.frame is None or entry.pins > 0 or entry.dirty:
            raise PageError("it stays")
        self.entries[page] = Entry()
        self.owners[entry.frame] = None
        bisect.insort(self.free, entry.frame)
        return entry.frame
