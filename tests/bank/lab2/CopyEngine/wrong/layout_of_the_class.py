"""
wrong: the layout belongs to the class: the next engine changes it
check: upload, upload_async
phrase: Two objects share their books
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.copy_queue
        self.ring = ring
        CopyEngine.layout = layout
        self.copied = device.create_fence(device.fresh_name("copied"))

    def upload(self, layer, slot):
        for group, buffer in zip(self.layout.groups, slot.buffers, strict=True):
            start = self.ring.allocate(group.nbytes)
            for place in group.tensors:
                self.ring.heap.write(start + place.offset, tensor_name(layer, place.name))
            self.queue.copy(buffer, self.ring.heap.span(start, group.nbytes), label=f"upload layer {layer}")
        value = self.copied.last_submitted + 1
        self.queue.signal(self.copied, value)
        self.ring.retire(self.copied, value)
        return value

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
