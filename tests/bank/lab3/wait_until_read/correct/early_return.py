"""
note: other names and structure, a helper
"""


def reader_of(step, slots):
    return step - slots


def wait_until_read(self, upload):
    reader = reader_of(upload, len(self.slots))
    if reader < 0:
        return
    self.device.copy_queue.wait(self.consumed, reader + 1)
