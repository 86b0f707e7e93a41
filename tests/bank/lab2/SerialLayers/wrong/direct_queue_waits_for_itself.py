"""
wrong: the direct queue waits for its own kernels
check: serial, gate
phrase: The wrong queue waits
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.direct_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
