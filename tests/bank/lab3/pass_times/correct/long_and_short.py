"""
note: the longer time L times, the shorter once
"""


def pass_times(layers, t_trans, t_comp):
    short, long = sorted((t_trans, t_comp))
    return dict(resident=layers * t_comp, serial=layers * (short + long), streamed=layers * long + short)
