"""
wrong: is the package's resident source
check: gate
phrase: memory
"""

from xinfer_lab.residency.resident import ResidentLayers


class StreamingLayers:
    def __new__(cls, device, layout, dtype, host, layers, pool):
        return ResidentLayers(device, layout, dtype, layers)
