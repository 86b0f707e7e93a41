"""
wrong: takes the part that stands beside other pieces
check: clock, clock_pins
phrase: module that holds the answer
"""


class Clock:
    def __init__(self):
        from xinfer_lab.labs.lab5.parts import neighbours

        self.given = neighbours("table")["Clock"]()

    def __getattr__(self, name):
        return getattr(self.given, name)
