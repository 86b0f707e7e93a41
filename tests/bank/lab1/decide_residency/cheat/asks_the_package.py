"""
wrong: lets the package clamp the pool
check: decide_residency, refuse_budget, gate
phrase: holds the answer
"""

from xinfer_lab.residency.model import effective_pool


def decide_residency(sizes, budget):
    return effective_pool((budget - sizes["always"]) // sizes["layer"], sizes["layers"])
