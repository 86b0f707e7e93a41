"""
wrong: sorts by name, not by place
check: layer_table
phrase: This is not the right table
rule: layer_table.sorted
"""


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[0][::-1]):
        words = name.split(".")
        layer = int(words[2]) if words[:2] == ["model", "layers"] else "rest"
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
