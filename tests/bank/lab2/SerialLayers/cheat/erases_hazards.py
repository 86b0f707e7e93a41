"""
wrong: empties the device's own list of hazards
check: serial
phrase: race
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.hazards.clear()
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
