"""
wrong: sorts the list that it was given
check: victim
rule: victim.keeps_inputs
phrase: It overwrites held
"""


def victim(held, layer, layers):
    held.sort(key=lambda other: (other - layer) % layers)
    return held[-1]
