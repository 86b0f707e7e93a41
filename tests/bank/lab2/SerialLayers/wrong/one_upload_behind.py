"""
wrong: waits for the upload before
check: serial, gate
phrase: The wait is not for this upload
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready - 1)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
