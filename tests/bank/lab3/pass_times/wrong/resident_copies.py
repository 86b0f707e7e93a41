"""
wrong: resident pays for a copy
check: pass_times
phrase: Resident copies too
rule: pass_times.resident
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": t_trans + layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": t_trans + (layers - 1) * max(t_trans, t_comp) + t_comp,
    }
