"""
note: a class of its own that holds a ring
"""


class Ring:
    """All counters in a class of its own."""

    def __init__(self, device, layout, dtype, host, layers, pool):
        self.given = TrackedRing(device, layout, dtype, host, layers, pool)
        self.pool = pool

    def __getattr__(self, name):
        return getattr(self.given, name)


class StreamingLayers(Ring):
    def begin(self, steps):
        self.given.end = self.step + steps * self.layers
        for ahead in range(self.step, min(self.step + self.pool, self.end)):
            self.fill(ahead)

    def fill(self, step):
        if step < self.uploaded:
            return
        if step >= self.pool:
            self.device.copy_queue.wait(self.consumed, step - self.pool + 1)
        self.engine.upload(step % self.layers, self.slots[step % self.pool])
        self.given.uploaded = step + 1

    def ensure(self, layer):
        return ensure(self.given, layer)

    def release(self, layer):
        done = self.step + 1
        self.device.direct_queue.signal(self.consumed, done)
        self.given.step = done
        if self.step + self.pool - 1 < self.end:
            self.fill(self.step + self.pool - 1)
