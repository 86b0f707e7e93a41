"""
wrong: compares layers by identity
check: victim
rule: victim.held
phrase: not the right layer
"""


def victim(held, layer, layers):
    last = held[0]
    for step in range(1, layers):
        for other in held:
            if other is (layer + step) % layers:
                last = other
    return last
