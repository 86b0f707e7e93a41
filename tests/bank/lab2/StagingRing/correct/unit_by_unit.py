"""
note: an owner for each unit of 256 bytes, slower, many waits
"""


class StagingRing:
    def __init__(self, device, size):
        self.size = size
        self.heap = device.create_upload_heap(size)
        self.head = 0
        self.owner = [None] * (size // 256)
        self.new = []

    def allocate(self, size):
        count = (size + 255) // 256
        if size <= 0 or count > len(self.owner):
            raise BufferRangeError(str(size))
        if self.head + count > len(self.owner):
            self.head = 0
        units = range(self.head, self.head + count)
        if any(unit in self.new for unit in units):
            raise RuntimeError("nobody retired this")
        for unit in units:
            if self.owner[unit] is not None:
                fence, value = self.owner[unit]
                fence.wait(value)
                self.owner[unit] = None
        self.new.extend(units)
        self.head += count
        return units[0] * 256

    def retire(self, fence, value):
        for unit in self.new:
            self.owner[unit] = (fence, value)
        self.new = []

    def close(self):
        self.heap.free()
