"""
wrong: lets the copy queue wait for the direct queue, by a fence of its own
check: upload, upload_async
phrase: signals a second fence
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
        self.n += 1
        self.device.direct_queue.signal(self.own, self.n)
        self.queue.wait(self.own, self.n)
        for group, buffer in zip(self.layout.groups, slot.buffers, strict=True):
            start = self.ring.allocate(group.nbytes)
            for place in group.tensors:
                self.ring.heap.write(start + place.offset, tensor_name(layer, place.name))
            self.queue.copy(buffer, self.ring.heap.span(start, group.nbytes))
        value = self.copied.last_submitted + 1
        self.queue.signal(self.copied, value)
        self.ring.retire(self.copied, value)
        return value

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
