"""
wrong: lets the package's own reader do it
check: tensor_ranges, refuse_ranges
phrase: holds the answer
"""

from xinfer_lab.qwen2.header import read_header as theirs


def tensor_ranges(header, data_start, file_size):
    return theirs(header)
