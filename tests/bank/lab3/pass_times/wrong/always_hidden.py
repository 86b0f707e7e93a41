"""
wrong: takes every copy for hidden
check: pass_times
phrase: Copies are always hidden
rule: pass_times.slower_sets_the_pace
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": t_trans + layers * t_comp,
    }
