"""
wrong: a third queue waits for every upload
check: prefetch, prefetch_ahead, gate
phrase: queue is given something to do
rule: prefetch.two_queues
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.device.write_back_queue.wait(ring.engine.copied, ring.slot_of(step).ready)
        ring.uploaded += 1
