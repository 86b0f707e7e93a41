"""
note: a helper that uploads one step, other names
"""


def upload_one(ring, number):
    ring.wait_until_read(number)
    ring.engine.upload(ring.layer_of(number), ring.slot_of(number))
    ring.uploaded = number + 1


def prefetch(self):
    free = len(self.slots) - (self.uploaded - self.step)
    left = self.end - self.uploaded
    if free > 0 and left > 0:
        upload_one(self, self.uploaded)
        prefetch(self)
