"""
wrong: compares pages by identity
check: table, table_refuses
phrase: is refused, and it is in order
rule: table.hundreds
"""


class PageTable(Entries):
    """Which page lies in which frame, and back. Pages and frames are numbers from 0."""

    def free_frame(self):
        """The lowest frame that belongs to no page; None if there is none."""
        for frame, owner in enumerate(self.owners):
            if owner is None:
                return frame
        return None

    def bind(self, page, frame):
        """The page owns the frame from now on, and is on its way there.

        Refused if the page has a frame already, or the frame an owner.
        """
        entry = self.entries[page]
        if entry.frame is not None or self.owners[frame] is not None:
            raise PageError(f"page {page}, in frame {entry.frame}, cannot be bound to frame {frame}")
        entry.state, entry.frame = "MIGRATING", frame
        self.owners[frame] = page

    def arrive(self, page):
        """Whoever uses the page from now on comes after its copy. Refused unless it is MIGRATING."""
        if self.entries[page].state != "MIGRATING":
            raise PageError(f"page {page} is not on its way: it is {self.entries[page].state}")
        self.entries[page].state = "IN_DEVICE"

    def pin(self, page):
        """The page has one user more. Refused unless it is IN_DEVICE."""
        if self.entries[page].state != "IN_DEVICE":
            raise PageError(f"page {page} cannot be used: it is {self.entries[page].state}")
        self.entries[page].pins += 1

    def unpin(self, page):
        """The page has one user less. Refused if it has none."""
        if not self.entries[page].pins:
            raise PageError(f"page {page} is released once too often")
        self.entries[page].pins -= 1

    def unbind(self, page):
        """The page gives its frame up and is IN_HOST; returns the frame, which is free then.

        Refused if it has no frame, if somebody uses it, or if it is dirty.
        """
        entry = self.entries[page]
        if entry.frame is None or self.owners[entry.frame] is not page or entry.pins or entry.dirty:
            raise PageError(f"page {page} cannot leave: {entry}")
        frame = entry.frame
        entry.state, entry.frame = "IN_HOST", None
        self.owners[frame] = None
        return frame
