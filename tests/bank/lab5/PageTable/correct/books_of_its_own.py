"""
note: nothing is inherited: a dict each way, states worked out
"""


class PageTable:
    def __init__(self, pages, frames):
        self.frames = frames
        self.place, self.there, self.users, self.written = {}, set(), {}, set()

    def state(self, page):
        return "IN_DEVICE" if page in self.there else "MIGRATING" if page in self.place else "IN_HOST"

    def frame_of(self, page):
        return self.place.get(page)

    def page_in(self, frame):
        return {frame: page for page, frame in self.place.items()}.get(frame)

    def pins(self, page):
        return self.users.get(page, 0)

    def is_dirty(self, page):
        return page in self.written

    def mark_dirty(self, page):
        if not self.pins(page):
            raise PageError("nobody has it")
        self.written.add(page)

    def mark_clean(self, page):
        self.written.discard(page)

    def free_frame(self):
        return min(set(range(self.frames)) - set(self.place.values()), default=None)

    def bind(self, page, frame):
        if page in self.place or frame in self.place.values():
            raise PageError("taken")
        self.place[page] = frame

    def arrive(self, page):
        if self.state(page) != "MIGRATING":
            raise PageError("not on its way")
        self.there.add(page)

    def pin(self, page):
        if page not in self.there:
            raise PageError("not there")
        self.users[page] = self.pins(page) + 1

    def unpin(self, page):
        if not self.pins(page):
            raise PageError("nobody has it")
        self.users[page] -= 1

    def unbind(self, page):
        if page not in self.place or self.pins(page) or page in self.written:
            raise PageError("it stays")
        self.there.discard(page)
        return self.place.pop(page)
