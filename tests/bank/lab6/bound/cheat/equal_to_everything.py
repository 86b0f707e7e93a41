"""
wrong: returns an object that is equal to everything
check: bound
phrase: The dict is not of the form
"""


class Anything(dict):
    def __eq__(self, other):
        return True

    __hash__ = None


def bound(resident, moved, link, memcpy=None):
    return Anything()
