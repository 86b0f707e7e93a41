"""
wrong: signals before the layer is computed
check: serial, gate
phrase: The signal comes before the read
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
        return self.hand_over(layer)

    def release(self, layer):
        pass
