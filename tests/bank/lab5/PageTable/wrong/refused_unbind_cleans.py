"""
wrong: who asks twice may let a written page go
check: table_refuses
phrase: Refused, and clean from then on
rule: table_refuses.stays_dirty
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
            raise PageError(f"page {page}, in frame {entry.frame}, cannot be bound to frame {frame}")
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page

    def arrive(self, page):
        if self.entries[page].state != "MIGRATING":
            raise PageError(f"page {page} is not on its way: it is {self.entries[page].state}")
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        if self.entries[page].state != "IN_DEVICE":
            raise PageError(f"page {page} cannot be used: it is {self.entries[page].state}")
        self.entries[page].pins += 1

    def unpin(self, page):
        if not self.entries[page].pins:
            raise PageError(f"page {page} is released once too often")
        self.entries[page].pins -= 1

    def unbind(self, page):
        entry = self.entries[page]
        if entry.frame is None or entry.pins or entry.dirty:
            entry.dirty = False
            raise PageError(f"page {page} cannot leave")
        frame = entry.frame
        entry.state, entry.frame = "IN_HOST", None
        self.owners[frame] = None
        return frame
