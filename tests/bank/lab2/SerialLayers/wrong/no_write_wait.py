"""
wrong: the slot is overwritten while it is read
check: serial, gate
phrase: Nobody waits for the reader
rule: serial.write_after_read
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
