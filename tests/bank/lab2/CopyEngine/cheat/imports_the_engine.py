"""
wrong: takes the package's own engine
check: upload, upload_async
phrase: holds the answer
"""

from xinfer_lab.residency.upload import CopyEngine as Given


class CopyEngine(Given):
    def __init__(self, device, ring, layout):
        from xinfer_lab.residency.host import PinnedLayers

        super().__init__(device, PinnedLayers(device, layout, 6))
