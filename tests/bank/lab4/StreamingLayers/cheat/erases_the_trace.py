"""
wrong: empties the stream at the end
check: gate
phrase: cannot be run
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        self.end = self.step + steps * self.layers

    def ensure(self, layer):
        return self.slot_of(self.step).holding(layer)

    def release(self, layer):
        self.step += 1

    def close(self):
        super().close()
        self.device.stream.records.clear()
