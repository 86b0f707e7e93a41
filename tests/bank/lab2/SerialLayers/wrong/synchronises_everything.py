"""
wrong: waits until everything is idle
check: serial, gate
phrase: The host waits in place of a queue
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.wait_idle()
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
