"""
wrong: takes release for the end of the computing
check: wait_until_read, gate
phrase: Nobody waits for the reader
rule: wait_until_read.read
"""


def wait_until_read(ring, step):
    pass
