"""
wrong: a name that begins with the number is enough
check: layer_table
phrase: Layer 1 swallows layers 10 to 12
rule: layer_table.whole_number
"""


def layer_table(ranges):
    table = {}
    numbers = sorted({int(name.split(".")[2]) for name in ranges if name.startswith("model.layers.")})
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        layer = next((n for n in numbers if name.startswith(f"model.layers.{n}")), "rest")
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
