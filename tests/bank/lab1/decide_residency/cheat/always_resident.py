"""
wrong: says resident whatever the budget is
check: decide_residency, refuse_budget, gate
phrase: another one
"""

def decide_residency(sizes, budget):
    return "resident"
