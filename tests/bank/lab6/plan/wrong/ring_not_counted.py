"""
wrong: the staging ring takes no pinned memory, as far as it knows
check: gate, beat_40, beat_70, beat_90
rule: gate.pinned
phrase: A pinned copy that does not fit
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
        tiers = (("pinned", streamed, None), ("staged", 0, needs["memcpy"]))
        for host, held, memcpy in tiers:
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                best = time
                chosen = {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
