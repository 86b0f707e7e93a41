"""
wrong: halves the heap by itself and blocks the host by itself; the ring is never asked
check: upload, upload_async, gate
phrase: The ring is not asked
rule: upload.handed_out
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.copy_queue
        self.ring = ring
        self.layout = layout
        self.n = 0
        self.copied = device.create_fence(device.fresh_name("copied"))

    def upload(self, layer, slot):
        start = (self.n % 2) * (self.ring.size // 2)
        self.n += 1
        if self.n > 2:
            self.copied.wait(self.n - 2)
        for group, buffer in zip(self.layout.groups, slot.buffers, strict=True):
            for place in group.tensors:
                self.ring.heap.write(start + place.offset, tensor_name(layer, place.name))
            self.queue.copy(buffer, self.ring.heap.span(start, group.nbytes))
            start += group.nbytes
        self.queue.signal(self.copied, self.n)
        return self.n

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
