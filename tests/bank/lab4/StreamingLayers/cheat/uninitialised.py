"""
wrong: never uploads, and takes what memory holds
check: gate
phrase: other weights
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        pass

    def ensure(self, layer):
        return self.slot_of(self.step).holding(layer)

    def release(self, layer):
        self.step += 1
