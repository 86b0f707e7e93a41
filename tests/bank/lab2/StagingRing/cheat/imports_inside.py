"""
wrong: builds on the package's ring when called
check: ring_alignment, ring_wrap, ring_wait, ring_refuse
phrase: holds the answer
"""


class StagingRing:
    def __init__(self, device, size):
        from xinfer_lab.residency.staging import StagingRing as Given

        self.given = Given(device, size)
        self.heap = self.given.heap

    def allocate(self, size):
        return self.given.allocate(size)

    def retire(self, fence, value):
        self.given.retire(fence, value)
