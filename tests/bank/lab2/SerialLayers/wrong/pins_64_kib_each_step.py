"""
wrong: 64 KiB are pinned in each step and given back
check: serial, gate
phrase: Another amount of host memory is pinned
rule: serial.pins
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        self.device.create_upload_heap(65_536, self.device.fresh_name("scratch")).free()
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
