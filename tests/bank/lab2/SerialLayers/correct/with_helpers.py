"""
note: helper methods, other names
"""


class SerialLayers(OneSlot):
    def make_room(self):
        if self.step > 0:
            self.device.copy_queue.wait(self.consumed, self.step)

    def arrive(self, value):
        self.device.direct_queue.wait(self.engine.copied, value)

    def ensure(self, wanted):
        self.make_room()
        self.arrive(self.engine.upload(wanted, self.slot))
        return self.hand_over(wanted)

    def release(self, wanted):
        self.device.direct_queue.signal(self.consumed, self.step + 1)
        self.step = self.step + 1
