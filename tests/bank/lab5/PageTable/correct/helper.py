"""
note: one helper refuses for all
"""


class StaysError(PageError):
    """A call that is out of order."""


def demand(condition, words):
    if not condition:
        raise StaysError(words)


class PageTable(Entries):
    def free_frame(self):
        return self.owners.index(None) if None in self.owners else None

    def bind(self, page, frame):
        entry = self.entries[page]
        demand(entry.state == "IN_HOST", "it has a frame")
        demand(self.owners[frame] is None, "taken")
        self.owners[frame], entry.frame, entry.state = page, frame, "MIGRATING"

    def arrive(self, page):
        demand(self.entries[page].state == "MIGRATING", "not on its way")
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        demand(self.entries[page].state == "IN_DEVICE", "not there")
        self.entries[page].pins += 1

    def unpin(self, page):
        demand(self.entries[page].pins > 0, "nobody has it")
        self.entries[page].pins -= 1

    def unbind(self, page):
        entry = self.entries[page]
        demand(page in self.owners and entry.pins == 0 and not entry.dirty, "it stays")
        frame = self.owners.index(page)
        self.owners[frame] = entry.frame = None
        entry.state = "IN_HOST"
        return frame
