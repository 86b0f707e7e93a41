"""
wrong: the staging ring wherever it fits, after the form is chosen as it should be
check: beat_40, beat_70, beat_90
rule: beat_90.tier
phrase: Staged where pinned memory would do
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
                staged = needs["ring"] * layer <= needs["pinned"]
                best = time
                chosen = {"form": form, "streamed": places, "slots": slots, "host": "staged" if staged else host}
    return chosen
