"""
wrong: signals a fence of its own besides
check: upload
phrase: signals a second fence
rule: upload.one_signal
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.copy_queue
        self.ring = ring
        self.layout = layout
        self.device = device
        self.copied = device.create_fence(device.fresh_name("copied"))
        self.own, self.n = device.create_fence(device.fresh_name("own")), 0

    def upload(self, layer, slot):
        for group, buffer in zip(self.layout.groups, slot.buffers, strict=True):
            start = self.ring.allocate(group.nbytes)
            for place in group.tensors:
                self.ring.heap.write(start + place.offset, tensor_name(layer, place.name))
            self.queue.copy(buffer, self.ring.heap.span(start, group.nbytes))
        value = self.copied.last_submitted + 1
        self.queue.signal(self.copied, value)
        self.ring.retire(self.copied, value)
        self.queue.signal(self.own, value)
        return value

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
