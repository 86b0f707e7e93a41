"""
wrong: builds on the package's own source
check: serial
phrase: holds the answer
"""

from xinfer_lab.residency.serial import SerialLayers as Given


class SerialLayers(Given):
    pass
