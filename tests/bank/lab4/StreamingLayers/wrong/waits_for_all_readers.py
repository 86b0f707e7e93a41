"""
wrong: the copy queue waits for the step that was handed in last
check: gate
rule: gate.beside
phrase: Waits for more than the slot
"""


class StreamingLayers(TrackedRing):
    def refill_later(self):
        """Nothing."""

    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + len(self.slots), self.end):
            step = self.uploaded
            if self.step:
                self.device.copy_queue.wait(self.consumed, self.consumed.last_submitted)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.step += 1
        self.refill_later()
        self.device.direct_queue.signal(self.consumed, self.step)
        self.refill()
