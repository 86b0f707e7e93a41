"""
wrong: returns a number that says it equals every other
check: layer_bytes
phrase: This is not the right number of bytes
"""


class Right(int):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = int.__hash__


def layer_bytes(config):
    return Right(1)
