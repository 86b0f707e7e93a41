"""
wrong: writes a wait into the stream that the device was never asked for
check: wait_until_read, gate
phrase: The wrong queue waits
"""


def wait_until_read(ring, step):
    from xinfer_lab.device.records import Wait

    pool = len(ring.slots)
    if step >= pool:
        ring.device.stream.records.append(
            Wait(queue="direct", fence=ring.consumed.name, value=step - pool + 1, where="notes.py:1")
        )
