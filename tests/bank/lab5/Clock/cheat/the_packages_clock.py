"""
wrong: uses the package's own
check: clock, clock_pins
phrase: module that holds the answer
"""


class Clock:
    def __init__(self):
        from xinfer_lab.paging.policy import open_policy

        self.given = open_policy("clock")

    def __getattr__(self, name):
        return getattr(self.given, name)
