"""
wrong: one stage too many
check: pass_times
phrase: One stage too many
rule: pass_times.stages
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": t_trans + layers * max(t_trans, t_comp) + t_comp,
    }
