"""
wrong: keeps the number of steps in the class
check: gate
rule: gate.signal_first
phrase: Two objects share their books
"""


class StreamingLayers(TrackedRing):
    counted = {}

    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + len(self.slots), self.end):
            step = self.uploaded
            if step >= len(self.slots):
                self.device.copy_queue.wait(self.consumed, step - len(self.slots) + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        number = 0 if self.step == 0 else self.counted[0]
        self.counted[0] = number + 1
        self.step = self.counted[0]
        self.refill()
