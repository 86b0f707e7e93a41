"""
wrong: raises ValueError for whatever it is given
check: read_header, refuse_header
phrase: It raised ValueError
"""


def read_header(file):
    raise ValueError("not to be trusted")
