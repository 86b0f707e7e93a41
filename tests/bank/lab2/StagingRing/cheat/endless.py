"""
wrong: never returns
check: ring_alignment, ring_wrap, ring_wait, ring_refuse
phrase: took too long
"""


class StagingRing:
    def __init__(self, device, size):
        self.size = size
        self.heap = device.create_upload_heap(size, "staging")
        self.head = 0
        self.ranges = deque()

    def allocate(self, size):
        if not 0 < size <= self.size:
            raise BufferRangeError(f"a ring of {self.size} bytes cannot hand out {size}")
        size = -(-size // 256) * 256
        while size == size:
            pass
        start = self.head if self.head + size <= self.size else 0
        while any(used["start"] < start + size and start < used["end"] for used in self.ranges):
            oldest = self.ranges[0]
            if oldest["fence"] is None:
                raise RuntimeError("the ring is full of ranges that were never retired")
            oldest["fence"].wait(oldest["value"])
            self.ranges.popleft()
        self.ranges.append({"start": start, "end": start + size, "fence": None, "value": 0})
        self.head = start + size
        return start

    def retire(self, fence, value):
        for used in self.ranges:
            if used["fence"] is None:
                used["fence"] = fence
                used["value"] = value

    def close(self):
        self.heap.free()
