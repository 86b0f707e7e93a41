"""
wrong: counts by a fence of its own, and never signals consumed
check: gate
rule: gate.counted
phrase: consumed does not say
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        if not hasattr(self, "read"):
            self.read = self.device.create_fence("read")
        self.end = self.step + steps * self.layers
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + len(self.slots), self.end):
            step = self.uploaded
            if step >= len(self.slots):
                self.device.copy_queue.wait(self.read, step - len(self.slots) + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.read, self.step + 1)
        self.step += 1
        self.refill()
