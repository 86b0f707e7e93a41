"""
wrong: ends the process
check: ensure_fence, ensure_state, gate
phrase: SystemExit
"""


def ensure(ring, layer):
    raise SystemExit(0)
