"""
note: compares all pairs, lists in place of tuples
"""

BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def tensor_ranges(header, data_start, file_size):
    result = {}
    for name in header:
        if name.startswith("__"):
            continue
        size = BYTES.get(header[name]["dtype"], -1)
        for length in header[name]["shape"]:
            size *= length
        begin, end = header[name]["data_offsets"]
        sound = size >= 0 and 0 <= begin and end - begin == size and data_start + end <= file_size
        if not sound:
            raise ValueError(name)
        for first, last in result.values():
            if data_start + begin < last and first < data_start + end:
                raise ValueError("overlap")
        result[name] = [data_start + begin, data_start + end]
    return result
