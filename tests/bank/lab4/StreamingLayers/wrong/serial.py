"""
wrong: uploads a layer when it is asked for
check: gate
rule: gate.filled
phrase: Not far enough ahead
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        self.end = self.step + steps * self.layers

    def refill(self):
        while self.uploaded < self.step + 1:
            step = self.uploaded
            if step >= len(self.slots):
                self.device.copy_queue.wait(self.consumed, step - len(self.slots) + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1

    def ensure(self, layer):
        self.refill()
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step += 1
