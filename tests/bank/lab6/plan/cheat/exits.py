"""
wrong: ends the process
check: gate
phrase: It raised SystemExit
"""


def plan(needs):
    raise SystemExit(0)
