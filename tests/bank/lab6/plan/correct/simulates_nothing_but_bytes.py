"""
note: compares bytes over the slowest rate first, computing last
"""


def plan(needs):
    found = {}
    for form, figures in needs["forms"].items():
        layer, layers = figures["layer_bytes"], needs["layers"]
        for stay in range(layers, -1, -1):
            count = layers - stay
            slots = 0 if count == 0 else 2
            if 0 < count < 3 or figures["always"] + (stay + slots) * layer > needs["budget"]:
                continue
            host = "pinned" if count * layer <= needs["pinned"] else "staged"
            if host == "staged" and needs["ring"] * layer > needs["pinned"]:
                continue
            slow = needs["link"] if host == "pinned" else min(needs["memcpy"], needs["link"])
            time = max(count * layer / slow, needs["t_pass"] + layers * figures["t_decode"])
            found[time] = {"form": form, "host": host, "slots": slots, "streamed": spread(layers, count)}
            break
    return found[min(found)]
