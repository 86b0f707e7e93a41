"""
wrong: uses the package's own streamer
check: lifetime
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers


def lifetime(ring, step, compute):
    StreamingLayers._prefetch(ring)
    compute(ring.slots[0])
