"""
wrong: says resident whatever the budget is
check: decide_residency, refuse_budget, gate
phrase: This is not the right decision
"""


def decide_residency(sizes, budget):
    return "resident"
