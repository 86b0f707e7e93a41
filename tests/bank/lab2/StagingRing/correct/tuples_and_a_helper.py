"""
note: other books, a helper, and one wait for the largest value in the way
"""


def round_up(size, unit=256):
    return (size + unit - 1) // unit * unit


class StagingRing:
    def __init__(self, device, size):
        self.heap = device.create_upload_heap(size, "ring")
        self.size, self.head = size, 0
        self.open, self.busy = [], []

    def overlapping(self, start, end, ranges):
        return [entry for entry in ranges if entry[0] < end and start < entry[1]]

    def allocate(self, size):
        if size < 1 or size > self.size:
            raise BufferRangeError("never fits")
        taken = round_up(size)
        if self.head + taken > self.size:
            self.head = 0
        start, end = self.head, self.head + taken
        if self.overlapping(start, end, self.open):
            raise RuntimeError("full")
        blocked = self.overlapping(start, end, self.busy)
        if blocked:
            fence, value = max(((f, v) for _, _, f, v in blocked), key=lambda pair: pair[1])
            fence.wait(value)
            self.busy = [entry for entry in self.busy if entry[3] > value]
        self.open.append((start, end))
        self.head = end
        return start

    def retire(self, fence, value):
        self.busy += [(start, end, fence, value) for start, end in self.open]
        self.open = []

    def close(self):
        self.heap.free()
