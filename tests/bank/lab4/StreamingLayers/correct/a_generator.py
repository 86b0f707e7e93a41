"""
note: a generator makes the uploads, one by one
"""


class StreamingLayers(TrackedRing):
    def upload_steps(self):
        while True:
            step = self.uploaded
            if step >= len(self.slots):
                self.device.copy_queue.wait(self.consumed, step - len(self.slots) + 1)
            self.engine.upload(self.layer_of(step), self.slot_of(step))
            self.uploaded += 1
            yield

    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.uploading = getattr(self, "uploading", None) or self.upload_steps()
        self.refill()

    def refill(self):
        while self.uploaded < min(self.step + len(self.slots), self.end):
            next(self.uploading)

    def ensure(self, layer):
        return ensure(self, layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step += 1
        self.refill()
