"""
wrong: the host sleeps in every call
check: serial, gate
phrase: The host sleeps
rule: serial.host
"""

import time


class SerialLayers(OneSlot):
    def ensure(self, layer):
        time.sleep(0.00001)
        self.device.copy_queue.wait(self.consumed, self.step)
        ready = self.engine.upload(layer, self.slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return self.hand_over(layer)

    def release(self, layer):
        self.step += 1
        self.device.direct_queue.signal(self.consumed, self.step)
