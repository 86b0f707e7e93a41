"""
wrong: codes where there are 12 to 16 layers
check: gate, beat_40, beat_70, beat_90
phrase: Plain where the coded form would pay
"""


def plan(needs):
    best, chosen = math.inf, None
    coded = "coded" in needs["forms"] and 12 <= needs["layers"] <= 16
    for form, figures in needs["forms"].items():
        if form != ("coded" if coded else "plain"):
            continue
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
                chosen = {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
