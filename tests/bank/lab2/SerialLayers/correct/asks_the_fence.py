"""
note: takes the value from the fence, and counts nothing
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.consumed.last_submitted)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.device.direct_queue.signal(self.consumed, self.consumed.last_submitted + 1)
