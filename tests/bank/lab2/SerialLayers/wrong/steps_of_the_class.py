"""
wrong: steps are counted in the class: sources share the number
check: serial, gate
phrase: Wait before signal
"""


class SerialLayers(OneSlot):
    steps = 0

    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, SerialLayers.steps)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        SerialLayers.steps += 1
        self.device.direct_queue.signal(self.consumed, SerialLayers.steps)
