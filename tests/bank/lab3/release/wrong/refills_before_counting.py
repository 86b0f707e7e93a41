"""
wrong: refills one step late
check: release, gate
phrase: ring.step has to go on before prefetch
rule: release.refills
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.prefetch()
    ring.step += 1
