"""
wrong: what is always there is not counted
check: gate, beat_40, beat_70, beat_90
rule: gate.budget
phrase: The plan is larger than the budget
"""


def plan(needs):
    best, chosen = math.inf, None
    for form, figures in needs["forms"].items():
        layer = figures["layer_bytes"]
        try:
            streamed, slots = fit(needs["budget"], 0, needs["layers"], layer)
        except ValueError:
            continue
        computing = needs["t_pass"] + needs["layers"] * figures["t_decode"]
        for host, held, memcpy in (("pinned", streamed, None), ("staged", needs["ring"], needs["memcpy"])):
            if streamed and held * layer > needs["pinned"]:
                continue
            time = bound(computing, streamed * layer, needs["link"], memcpy)["time"]
            if time < best:
                places = spread(needs["layers"], streamed)
                best, chosen = time, {"form": form, "streamed": places, "slots": slots, "host": host}
    return chosen
