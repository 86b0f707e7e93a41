"""
wrong: the host waits for each copy, and reads a heap of its own
check: serial, gate
phrase: The host waits in place of a queue
rule: serial.host
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        self.engine.copied.wait(ready)
        own = self.device.create_readback_heap(1, self.device.fresh_name("own"))
        own.read("uint8", (1,))
        own.free()
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
