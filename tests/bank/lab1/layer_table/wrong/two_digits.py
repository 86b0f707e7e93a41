"""
wrong: a layer's number has at most two digits
check: layer_table
phrase: This is not the right table
rule: layer_table.whole_number
"""

import re


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        found = re.match(r"model\.layers\.(\d{1,2})", name)
        layer = int(found[1]) if found else "rest"
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
