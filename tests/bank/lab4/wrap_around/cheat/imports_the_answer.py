"""
wrong: uses the package's own streamer
check: wrap_around
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers


def wrap_around(ring, step, compute):
    StreamingLayers._prefetch(ring)
    compute(ring.slots[0])
