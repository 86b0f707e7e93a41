"""
wrong: hides what goes wrong
check: upload, upload_async
phrase: not yet
"""


class CopyEngine:
    def __init__(self, device, ring, layout):
        self.copied = device.create_fence("copied")

    def upload(self, layer, slot):
        try:
            raise RuntimeError
        except BaseException:
            return 0

    def close(self):
        pass
