"""
wrong: pins memory at each step
check: gate
rule: gate.no_memory
phrase: Memory is allocated while the passes run
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
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.device.create_upload_heap(65536, self.device.fresh_name("scratch"))
        self.step += 1
        self.refill()
