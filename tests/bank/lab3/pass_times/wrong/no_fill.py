"""
wrong: leaves the pipeline's fill out
check: pass_times
phrase: No fill
rule: pass_times.fill
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": layers * max(t_trans, t_comp),
    }
