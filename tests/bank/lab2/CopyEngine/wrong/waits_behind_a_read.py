"""
wrong: the host waits for each upload, and reads a heap of its own
check: upload, upload_async, gate
phrase: Another amount of host memory is pinned
rule: upload.pins
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.queue = device.copy_queue
        self.ring = ring
        self.layout = layout
        self.own = device.create_readback_heap(1, device.fresh_name("own"))
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
        self.copied.wait(value)
        self.own.read("uint8", (1,))
        return value

    def close(self):
        self.copied.wait(self.copied.last_submitted)
        self.ring.close()
