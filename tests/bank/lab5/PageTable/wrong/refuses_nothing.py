"""
wrong: every call is taken
check: table_refuses
phrase: Nothing is refused
"""


class PageTable(Entries):
    def free_frame(self):
        for frame, owner in enumerate(self.owners):
            if owner is None:
                return frame
        return None

    def bind(self, page, frame):
        entry = self.entries[page]
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page

    def arrive(self, page):
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        self.entries[page].pins += 1

    def unpin(self, page):
        self.entries[page].pins -= 1

    def unbind(self, page):
        entry = self.entries[page]
        frame = entry.frame
        entry.state, entry.frame = "IN_HOST", None
        if frame is not None:
            self.owners[frame] = None
        return frame
