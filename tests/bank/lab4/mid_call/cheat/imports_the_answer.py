"""
wrong: uses the package's own streamer
check: mid_call
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers


def mid_call(ring, step, compute):
    StreamingLayers._prefetch(ring)
    compute(ring.slots[0])
