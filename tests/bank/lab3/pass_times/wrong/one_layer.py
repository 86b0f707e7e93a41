"""
wrong: the times of one layer
check: pass_times
phrase: One layer only
rule: pass_times.all_layers
"""


def pass_times(layers, t_trans, t_comp):
    return {"resident": t_comp, "serial": t_trans + t_comp, "streamed": t_trans + t_comp}
