"""
note: no function but its own; candidates in a list
"""


def candidates(needs):
    layers = needs["layers"]
    for form, figures in needs["forms"].items():
        size = figures["layer_bytes"]
        room = (needs["budget"] - figures["always"]) // size
        if room < 2:
            continue
        count = 0 if room >= layers else layers - room + 2
        for host in ("staged", "pinned"):
            pinned = (needs["ring"] if host == "staged" else count) * size
            if count == 0 or pinned <= needs["pinned"]:
                rate = needs["link"] if host == "pinned" else min(needs["link"], needs["memcpy"])
                time = max(needs["t_pass"] + layers * figures["t_decode"], count * size / rate)
                yield (
                    time,
                    {
                        "host": "pinned" if count == 0 else host,
                        "form": form,
                        "slots": 2 * bool(count),
                        "streamed": [(2 * k + 1) * layers // (2 * count) for k in range(count)],
                    },
                )


def plan(needs):
    return min(candidates(needs), key=lambda pair: pair[0])[1]
