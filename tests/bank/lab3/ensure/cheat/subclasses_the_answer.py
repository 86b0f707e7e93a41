"""
wrong: asks the package's own answer
check: ensure, gate
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers as Given


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    weights = Given.ensure(ring, layer)
    return weights
