"""
wrong: only the first digit of the layer's number
check: layer_table
phrase: Layer 1 swallows layers 10 to 12
rule: layer_table.whole_number
"""


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        words = name.split(".")
        layer = int(words[2][0]) if words[:2] == ["model", "layers"] else "rest"
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
