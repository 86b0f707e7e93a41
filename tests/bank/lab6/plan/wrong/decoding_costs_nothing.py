"""
wrong: t_decode is left out
check: beat_40, beat_70, beat_90
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
        computing = 0
        for host, held, memcpy in (("pinned", streamed, None), ("staged", needs["ring"], needs["memcpy"])):
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                places = spread(needs["layers"], streamed)
                best, chosen = time, {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
