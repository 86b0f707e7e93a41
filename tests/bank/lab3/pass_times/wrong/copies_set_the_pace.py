"""
wrong: takes every pass for bound by copies
check: pass_times
phrase: Copies always set the pace
rule: pass_times.slower_sets_the_pace
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": layers * t_trans + t_comp,
    }
