"""
wrong: a third of the layers streams besides those that have to
check: beat_40, beat_70, beat_90
rule: beat_90.stay
phrase: Layers stream that could stay
"""


def plan(needs):
    best, chosen = math.inf, None
    for form, figures in needs["forms"].items():
        layer = figures["layer_bytes"]
        try:
            streamed, slots = fit(needs["budget"], figures["always"], needs["layers"], layer)
        except ValueError:
            continue
        computing = needs["t_pass"] + needs["layers"] * figures["t_decode"]
        places = spread(needs["layers"], streamed)
        tiers = (("pinned", streamed, None), ("staged", needs["ring"], needs["memcpy"]))
        for host, held, memcpy in tiers:
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                best = time
                more = min(needs["layers"], streamed + (needs["layers"] // 3 if streamed else 0))
                if host == "staged" or more * layer <= needs["pinned"]:
                    places = spread(needs["layers"], more)
                chosen = {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
