"""
note: a tuple of layers, the last layer among the streamed ones
"""


def plan(needs):
    options = []
    for form in reversed(needs["forms"]):
        size, always, decoding = (needs["forms"][form][key] for key in ("layer_bytes", "always", "t_decode"))
        try:
            count, slots = fit(needs["budget"], always, needs["layers"], size)
        except ValueError:
            continue
        busy = needs["t_pass"] + decoding * needs["layers"]
        if count * size <= needs["pinned"]:
            options.append((bound(busy, count * size, needs["link"])["time"], form, count, slots, "pinned"))
        elif needs["ring"] * size <= needs["pinned"]:
            staged = bound(busy, count * size, needs["link"], needs["memcpy"])
            options.append((staged["time"], form, count, slots, "staged"))
    _, form, count, slots, host = sorted(options)[0]
    places = tuple(sorted(needs["layers"] - 1 - layer for layer in spread(needs["layers"], count)))
    return {"form": form, "streamed": places, "slots": slots, "host": host}
