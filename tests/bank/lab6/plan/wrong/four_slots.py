"""
wrong: four slots, and fewer layers that stay
check: beat_70, beat_90
rule: beat_90.two_slots
phrase: More slots than two
"""


def plan(needs):
    best, chosen = math.inf, None
    for form, figures in needs["forms"].items():
        layer = figures["layer_bytes"]
        try:
            streamed, slots = fit(needs["budget"], figures["always"], needs["layers"], layer)
        except ValueError:
            continue
        if 0 < streamed < needs["layers"] - 1:
            streamed, slots = streamed + 2, 4
        computing = needs["t_pass"] + needs["layers"] * figures["t_decode"]
        for host, held, memcpy in (("pinned", streamed, None), ("staged", needs["ring"], needs["memcpy"])):
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                places = spread(needs["layers"], streamed)
                best, chosen = time, {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
