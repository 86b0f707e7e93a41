"""
wrong: counts layers from 1
check: layer_of, gate
phrase: Counted from 1
rule: layer_of.from_0
"""


def layer_of(step, layers):
    return step % layers + 1
