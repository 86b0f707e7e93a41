"""
wrong: copies on the direct queue
check: upload, upload_async, gate
phrase: is filled on the direct queue
rule: upload.copy_queue
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.direct_queue
        self.ring = ring
        self.layout = layout
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
