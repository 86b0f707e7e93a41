"""
wrong: everything with norm in its name goes to the rest
check: layer_table
phrase: This is not the right table
"""


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        words = name.split(".")
        layer = int(words[2]) if words[:2] == ["model", "layers"] and "norm" not in name else "rest"
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
