"""
wrong: one run from the first to the last byte
check: layer_table
phrase: Holes are swallowed
rule: layer_table.apart
"""


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        words = name.split(".")
        layer = int(words[2]) if words[:2] == ["model", "layers"] else "rest"
        runs = table.setdefault(layer, [])
        if runs and True:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
