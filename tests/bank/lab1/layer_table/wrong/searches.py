"""
wrong: layers. is looked for anywhere in a name
check: layer_table
phrase: "layers." anywhere
rule: layer_table.only_layers
"""

import re


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        found = re.search(r"layers\.(\d+)\.", name)
        layer = int(found[1]) if found else "rest"
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
