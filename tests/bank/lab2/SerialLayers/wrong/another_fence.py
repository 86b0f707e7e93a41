"""
wrong: a fence of its own is signalled in place of consumed
check: serial, gate
phrase: consumed is never signalled
rule: serial.signalled
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        if not hasattr(self, "read"):
            self.read = self.device.create_fence(self.device.fresh_name("read"))
        self.device.copy_queue.wait(self.read, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.read, self.step)
