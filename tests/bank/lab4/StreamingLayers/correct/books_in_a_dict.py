"""
note: its own books, a dict and a deque made in __init__
"""


class StreamingLayers(TrackedRing):
    def __init__(self, *given):
        super().__init__(*given)
        self.books = {"step": 0, "uploaded": 0, "end": 0}

    def begin(self, steps):
        self.books["end"] += steps * self.layers
        self.refill()

    def refill(self):
        while self.books["uploaded"] < min(self.books["step"] + self.pool, self.books["end"]):
            step = self.books["uploaded"]
            if step >= self.pool:
                self.device.copy_queue.wait(self.consumed, step - self.pool + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.books["uploaded"] += 1

    def ensure(self, layer):
        self.step = self.books["step"]
        return ensure(self, layer)

    def release(self, layer):
        self.books["step"] += 1
        self.device.direct_queue.signal(self.consumed, self.books["step"])
        self.refill()
