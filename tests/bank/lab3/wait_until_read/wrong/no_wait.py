"""
wrong: takes release for the end of the computing
check: wait_until_read, gate
phrase: Nobody waits for the reader
"""


def wait_until_read(ring, step):
    pass
