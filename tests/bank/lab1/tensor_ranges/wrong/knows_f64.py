"""
wrong: the table has F64 too
check: refuse_ranges
phrase: It gave an answer where it has to refuse
rule: refuse_ranges.dtype
"""

import math

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def tensor_ranges(header, data_start, file_size):
    ranges = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in SIZES:
            raise ValueError(f"{name} has the unknown dtype {entry['dtype']}")
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end:
            raise ValueError(f"{name} has the range [{begin}, {end}]")
        if data_start + end > file_size:
            raise ValueError(f"{name} ends at byte {data_start + end} of a file of {file_size}")
        if end - begin != math.prod(entry["shape"]) * SIZES[entry["dtype"]]:
            raise ValueError(f"{name} of shape {entry['shape']} does not fit its range")
        ranges[name] = (data_start + begin, data_start + end)
    places = sorted(ranges.values())
    for i in range(1, len(places)):
        if places[i][0] < places[i - 1][1]:
            raise ValueError(f"two tensors share byte {places[i][0]}")
    return ranges
