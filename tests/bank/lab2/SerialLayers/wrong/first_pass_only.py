"""
wrong: uploads each layer in the first pass only
check: serial, gate
phrase: The layer is not uploaded again
rule: serial.every_call
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.copied.last_submitted
        if self.step < self.layers:
            ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
