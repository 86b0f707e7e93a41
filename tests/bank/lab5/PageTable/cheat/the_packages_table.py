"""
wrong: uses the package's own
check: table
phrase: module that holds the answer
"""


class PageTable:
    def __init__(self, pages, frames):
        from xinfer_lab.labs.lab5.parts.table import PageTable as Given

        self.given = Given(pages, frames)

    def __getattr__(self, name):
        return getattr(self.given, name)
