"""
wrong: uses the package's own streamer
check: ordering
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers


def ordering(ring, step, compute):
    StreamingLayers._prefetch(ring)
    compute(ring.slots[0])
