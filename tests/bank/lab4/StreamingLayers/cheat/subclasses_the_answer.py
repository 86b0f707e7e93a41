"""
wrong: subclasses the package's own streamer
check: gate
phrase: holds
"""

from xinfer_lab.residency.streaming import StreamingLayers as Answer


class StreamingLayers(Answer):
    pass
