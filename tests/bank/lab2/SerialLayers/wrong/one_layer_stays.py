"""
wrong: does not upload again where the model has one layer
check: serial, gate
phrase: The layer is not uploaded again
rule: serial.every_call
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        if self.layers == 1 and self.step:
            return self.hand_over(layer)
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
