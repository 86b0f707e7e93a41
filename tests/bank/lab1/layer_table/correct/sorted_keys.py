"""
note: a pass for each layer, keys in order
"""


def layer_table(ranges):
    numbers = {int(name.split(".")[2]) for name in ranges if name.startswith("model.layers.")}
    table = {}
    for layer in [*sorted(numbers), "rest"]:
        if layer == "rest":
            mine = [place for name, place in ranges.items() if not name.startswith("model.layers.")]
        else:
            mine = [place for name, place in ranges.items() if name.startswith(f"model.layers.{layer}.")]
        runs = []
        for begin, end in sorted(mine):
            if runs and runs[-1][1] == begin:
                runs[-1][1] = end
            else:
                runs.append([begin, end])
        table[layer] = runs
    return table
