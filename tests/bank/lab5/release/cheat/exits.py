"""
wrong: ends the process
check: release, gate
phrase: SystemExit
"""


def release(pool, page):
    raise SystemExit(0)
