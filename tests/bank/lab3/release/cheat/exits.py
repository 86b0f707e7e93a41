"""
wrong: ends the process
check: release, gate
phrase: SystemExit
"""


def release(ring, layer):
    raise SystemExit(0)
