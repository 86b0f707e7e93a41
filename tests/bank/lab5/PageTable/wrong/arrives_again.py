"""
wrong: a page that is there may arrive again
check: table_refuses
phrase: has arrived already
"""


class PageTable(Entries):
    def free_frame(self):
        for frame, owner in enumerate(self.owners):
            if owner is None:
                return frame
        return None

    def bind(self, page, frame):
        entry = self.entries[page]
        if entry.frame is not None or self.owners[frame] is not None:
            raise PageError(f"page {page} cannot be bound to frame {frame}")
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page

    def arrive(self, page):
        if self.entries[page].state == "IN_HOST":
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
        return frame
