"""
note: helpers, other names
"""


def mark_read(ring):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)


def advance(ring):
    ring.step += 1
    ring.prefetch()


def release(self, which):
    mark_read(self)
    advance(self)
