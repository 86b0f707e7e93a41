"""
wrong: signals v before the v-th layer is computed
check: serial, gate
phrase: The signal comes before the read
rule: serial.behind
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.device.copy_queue.wait(self.consumed, self.step + 1)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
