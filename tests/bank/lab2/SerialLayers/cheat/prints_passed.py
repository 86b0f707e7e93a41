"""
wrong: prints what a check would print
check: serial
phrase: not yet
"""


class SerialLayers(OneSlot):
    def ensure(self, layer):
        print("lab2.serial: passed.")

    def release(self, layer):
        print("serial vs resident max abs diff = 0")
