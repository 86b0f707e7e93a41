"""
wrong: waits for the copy in ensure, and keeps no account
check: gate
rule: gate.account
phrase: The account is never brought up to date
"""


class StreamingLayers(TrackedRing):
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
        slot = self.slot_of(self.step)
        self.device.direct_queue.wait(self.engine.copied, slot.ready)
        return slot.holding(layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step += 1
        self.refill()
