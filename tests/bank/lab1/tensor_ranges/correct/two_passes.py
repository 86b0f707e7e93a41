"""
note: checks in the order of the offsets, with a helper
"""

import math

BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def refuse(condition, message):
    if condition:
        raise ValueError(message)


def tensor_ranges(header, data_start, file_size):
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    end = 0
    for name, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        refuse(entry["dtype"] not in BYTES, name)
        refuse(entry["data_offsets"][0] < end, f"{name} begins too early")
        begin, end = entry["data_offsets"]
        refuse(end < begin or end > file_size - data_start, f"{name} ends at {end}")
        refuse(end - begin != BYTES[entry["dtype"]] * math.prod(entry["shape"]), f"{name} has another size")
    return {name: tuple(data_start + offset for offset in entry["data_offsets"]) for name, entry in tensors.items()}
