"""
note: joins by sets of begins and ends
"""

import re
from collections import defaultdict


def layer_table(ranges):
    groups = defaultdict(list)
    for name, place in ranges.items():
        match = re.match(r"model\.layers\.(\d+)\.", name)
        groups[int(match.group(1)) if match else "rest"].append(tuple(place))
    return {layer: join(places) for layer, places in groups.items()}


def join(places):
    begins, ends = {b for b, _ in places}, {e for _, e in places}
    return list(zip(sorted(begins - ends), sorted(ends - begins)))
