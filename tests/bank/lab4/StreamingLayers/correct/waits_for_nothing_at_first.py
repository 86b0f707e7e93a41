"""
note: waits in the first steps too, for a value that is there from the start
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + len(self.slots), self.end):
            step = self.uploaded
            value = max(0, step - len(self.slots) + 1)
            if value:
                self.device.copy_queue.wait(self.consumed, value)
            self.engine.upload(step % self.layers, self.slots[step % self.pool])
            self.uploaded = step + 1

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step += 1
        self.refill()
