"""
wrong: what stays is taken to need no decoding
check: beat_70, beat_90
rule: beat_90.form
phrase: Coded where it does not pay
"""


def plan(needs):
    best, chosen = math.inf, None
    for form, figures in needs["forms"].items():
        layer = figures["layer_bytes"]
        try:
            streamed, slots = fit(needs["budget"], figures["always"], needs["layers"], layer)
        except ValueError:
            continue
        computing = needs["t_pass"] + streamed * figures["t_decode"]
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
