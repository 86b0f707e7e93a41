"""
wrong: streamed layers in a row
check: beat_90
rule: beat_90.spread
phrase: Streamed layers in a row
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
        for host, held, memcpy in (("pinned", streamed, None), ("staged", needs["ring"], needs["memcpy"])):
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                places = list(range(streamed))
                best, chosen = time, {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
