"""
wrong: overlap always halves
check: pass_times
phrase: Half of serial
rule: pass_times.beside
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": layers * (t_trans + t_comp) / 2,
    }
