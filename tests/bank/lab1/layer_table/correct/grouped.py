"""
note: grouped by itertools, with a pattern for the names
"""

import re
from itertools import groupby


def key_of(item):
    found = re.fullmatch(r"model\.layers\.(\d+)\..+", item[0])
    return int(found[1]) if found else "rest"


def layer_table(ranges):
    table = {}
    for layer, items in groupby(sorted(ranges.items(), key=lambda item: (str(key_of(item)), item[1])), key_of):
        runs = []
        for _, (begin, end) in items:
            if runs and runs[-1][1] == begin:
                begin = runs.pop()[0]
            runs.append((begin, end))
        table[layer] = runs
    return table
