"""
wrong: changes, then looks
check: table_refuses
phrase: Changed, then refused
rule: table_refuses.changes_nothing
"""


class PageTable(Entries):
    def free_frame(self):
        return next((frame for frame, owner in enumerate(self.owners) if owner is None), None)

    def bind(self, page, frame):
        entry, owner = self.entries[page], self.owners[frame]
        before = entry.frame
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page
        if before is not None or owner is not None:
            raise PageError("taken")

    def arrive(self, page):
        before = self.entries[page].state
        self.entries[page].state = "IN_DEVICE"
        if before != "MIGRATING":
            raise PageError("not on its way")

    def pin(self, page):
        self.entries[page].pins += 1
        if self.entries[page].state != "IN_DEVICE":
            raise PageError("not there")

    def unpin(self, page):
        self.entries[page].pins -= 1
        if self.entries[page].pins < 0:
            raise PageError("too often")

    def unbind(self, page):
        entry = self.entries[page]
        frame = entry.frame
        entry.state, entry.frame = "IN_HOST", None
        if frame is not None:
            self.owners[frame] = None
        if frame is None or entry.pins or entry.dirty:
            raise PageError("cannot leave")
        return frame
