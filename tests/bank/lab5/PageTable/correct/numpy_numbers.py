"""
note: frames and users in arrays, so that its answers are numbers of NumPy
"""

import numpy as np


class PageTable:
    def __init__(self, pages, frames):
        self.frames, self.users = np.full(pages, -1), np.zeros(pages, dtype=np.int64)
        self.there, self.written = np.zeros(pages, dtype=bool), np.zeros(pages, dtype=bool)
        self.owners = np.full(frames, -1)

    def state(self, page):
        if self.frames[page] < 0:
            return "IN_HOST"
        return "IN_DEVICE" if self.there[page] else "MIGRATING"

    def frame_of(self, page):
        return None if self.frames[page] < 0 else self.frames[page]

    def page_in(self, frame):
        return None if self.owners[frame] < 0 else self.owners[frame]

    def pins(self, page):
        return self.users[page]

    def is_dirty(self, page):
        return self.written[page]

    def mark_dirty(self, page):
        if not self.users[page]:
            raise PageError("nobody writes it")
        self.written[page] = True

    def mark_clean(self, page):
        self.written[page] = False

    def free_frame(self):
        free = np.flatnonzero(self.owners < 0)
        return free[0] if len(free) else None

    def bind(self, page, frame):
        if self.frames[page] >= 0 or self.owners[frame] >= 0:
            raise PageError("taken")
        self.frames[page], self.owners[frame], self.there[page] = frame, page, False

    def arrive(self, page):
        if self.state(page) != "MIGRATING":
            raise PageError("not on its way")
        self.there[page] = True

    def pin(self, page):
        if self.state(page) != "IN_DEVICE":
            raise PageError("not there")
        self.users[page] += 1

    def unpin(self, page):
        if self.users[page] == 0:
            raise PageError("nobody uses it")
        self.users[page] -= 1

    def unbind(self, page):
        if self.frames[page] < 0 or self.users[page] or self.written[page]:
            raise PageError("it stays")
        frame = self.frames[page]
        self.frames[page] = self.owners[frame] = -1
        return frame
