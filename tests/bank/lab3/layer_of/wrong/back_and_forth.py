"""
wrong: every second pass runs backwards
check: layer_of, gate
phrase: Back and forth
rule: layer_of.again
"""


def layer_of(step, layers):
    return step % layers if step // layers % 2 == 0 else layers - 1 - step % layers
