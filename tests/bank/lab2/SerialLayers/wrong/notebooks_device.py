"""
wrong: uses the notebook's device
check: serial, gate
phrase: Another device
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
