"""
note: lets the copy queue wait as soon as the signal is there
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
        self.device.copy_queue.wait(self.consumed, self.step)
