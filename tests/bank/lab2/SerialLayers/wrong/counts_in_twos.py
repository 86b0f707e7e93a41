"""
wrong: signals 2, 4, 6
check: serial, gate
phrase: does not count
rule: serial.numbered
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 2
        self.device.direct_queue.signal(self.consumed, self.step)
