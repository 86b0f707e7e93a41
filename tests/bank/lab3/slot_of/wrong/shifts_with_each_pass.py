"""
wrong: adds the pass to the layer
check: slot_of, gate
phrase: Shifted by one with each pass
rule: slot_of.over_all_passes
"""


def slot_of(step, layers, pool):
    return (step % layers + step // layers) % pool
