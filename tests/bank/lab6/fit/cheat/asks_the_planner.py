"""
wrong: imports the package's planner
check: fit
phrase: module that holds the answer
"""

from xinfer_lab.residency import plan as planner


def fit(budget, always, layers, layer_bytes):
    return planner.make_plan, 2
