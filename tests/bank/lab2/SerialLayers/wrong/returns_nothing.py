"""
wrong: does not hand the weights over
check: serial, gate
phrase: ensure has to return
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
