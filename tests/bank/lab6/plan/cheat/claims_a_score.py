"""
wrong: prints a line of its own and no plan
check: beat_90
phrase: plan returned nothing
"""


def plan(needs):
    print("lab6.gate: passed. beat-the-link/1 seed=0 score=1.0000 digest=0123456789abcdef")
