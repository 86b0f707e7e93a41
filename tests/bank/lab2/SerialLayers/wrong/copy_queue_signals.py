"""
wrong: the copy queue says that computing is done
check: serial, gate
phrase: The wrong queue signals
rule: serial.who_signals
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.copy_queue.signal(self.consumed, self.step)
