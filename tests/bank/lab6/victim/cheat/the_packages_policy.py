"""
wrong: asks the package's own Belady
check: victim
phrase: module that holds the answer
"""


def victim(held, layer, layers):
    from xinfer_lab.paging.belady import Belady

    uses = [(layer + step) % layers for step in range(layers)]
    policy = Belady(uses)
    for other in held:
        policy.placed(other)
    policy.used(layer)
    return policy.choose(lambda other: True)
