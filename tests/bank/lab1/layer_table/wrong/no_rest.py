"""
wrong: embedding, norm and head are left out
check: layer_table
phrase: The rest is missing
rule: layer_table.rest
"""


def layer_table(ranges):
    table = {}
    for name, (begin, end) in sorted(ranges.items(), key=lambda item: item[1]):
        words = name.split(".")
        layer = int(words[2]) if words[:2] == ["model", "layers"] else "rest"
        if layer == "rest":
            continue
        runs = table.setdefault(layer, [])
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return table
