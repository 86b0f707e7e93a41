"""
wrong: raises whatever is asked
check: fit
phrase: It raised ValueError
"""


def fit(budget, always, layers, layer_bytes):
    raise ValueError("two slots do not fit")
