"""
wrong: serial overlaps already
check: pass_times
phrase: Serial already overlaps
rule: pass_times.serial
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * max(t_trans, t_comp),
        "streamed": t_trans + (layers - 1) * max(t_trans, t_comp) + t_comp,
    }
