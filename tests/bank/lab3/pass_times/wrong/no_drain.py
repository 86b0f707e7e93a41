"""
wrong: leaves the last layer's computing out
check: pass_times
phrase: No drain
rule: pass_times.drain
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": t_trans + (layers - 1) * max(t_trans, t_comp),
    }
