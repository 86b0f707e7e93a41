"""
wrong: signals that the copy has arrived before it is submitted
check: prefetch, prefetch_ahead, gate
phrase: The signal comes before the copy
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        slot, copied = ring.slot_of(step), ring.engine.copied
        ring.wait_until_read(step)
        arrived = copied.last_submitted + 1
        ring.device.copy_queue.signal(copied, arrived)
        ring.engine.upload(ring.layer_of(step), slot)
        slot.ready = arrived
        ring.uploaded += 1
