"""
wrong: imports the package's planner
check: gate
phrase: module that holds the answer
"""


def plan(needs):
    from xinfer_lab.residency.plan import make_plan

    return make_plan(None, None, needs["budget"])
