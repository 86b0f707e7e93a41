"""
wrong: waits for the step before the last
check: serial, gate
phrase: The wait is too little or too late
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, max(0, self.step - 1))
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
