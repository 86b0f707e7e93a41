"""
wrong: brings bytes of its own
check: prefetch, prefetch_ahead, gate
phrase: bytes of its own
"""

import torch


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
    heap = ring.device.create_upload_heap(256)
    heap.write(0, torch.zeros(256, dtype=torch.uint8), name=f"mine{ring.step}")
    heap.free()
