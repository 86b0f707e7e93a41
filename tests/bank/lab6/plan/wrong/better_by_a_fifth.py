"""
wrong: another plan has to be better by a fifth
check: beat_90
phrase: A pass takes longer than bound / 0.9
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
            if time < 0.8 * best:
                best = time
                chosen = {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
