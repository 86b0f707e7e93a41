"""
wrong: the shorter time sets the pace
check: pass_times
phrase: The shorter time sets the pace
rule: pass_times.slower_sets_the_pace
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": t_trans + (layers - 1) * min(t_trans, t_comp) + t_comp,
    }
