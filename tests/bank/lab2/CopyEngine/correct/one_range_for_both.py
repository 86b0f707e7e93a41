"""
note: asks the ring once for the whole layer
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.copy_queue
        self.ring = ring
        self.layout = layout
        self.copied = device.create_fence(device.fresh_name("copied"))

    def upload(self, layer, slot):
        start = self.ring.allocate(self.layout.nbytes)
        value = self.copied.last_submitted + 1
        for group, buffer in zip(self.layout.groups, slot.buffers, strict=True):
            for place in group.tensors:
                self.ring.heap.write(start + place.offset, tensor_name(layer, place.name))
            self.queue.copy(buffer, self.ring.heap.span(start, group.nbytes))
            start += group.nbytes
        self.ring.retire(self.copied, value)
        self.queue.signal(self.copied, value)
        return value

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
