"""
wrong: returns something that equals everything
check: slot_of, gate
phrase: not the right slot
"""


class Same(int):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __int__(self):
        return self


def slot_of(step, layers, pool):
    return Same(layers % pool)
