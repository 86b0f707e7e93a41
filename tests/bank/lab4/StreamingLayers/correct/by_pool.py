"""
note: says N as self.pool
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + self.pool, self.end):
            step = self.uploaded
            if step >= self.pool:
                self.device.copy_queue.wait(self.consumed, step - self.pool + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step += 1
        self.refill()
