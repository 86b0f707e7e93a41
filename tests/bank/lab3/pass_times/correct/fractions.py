"""
note: exact fractions
"""

from fractions import Fraction


def pass_times(layers, t_trans, t_comp):
    t, c = Fraction(t_trans), Fraction(t_comp)
    stages = (layers - 1) * max(t, c)
    return {"resident": layers * c, "serial": layers * (t + c), "streamed": t + stages + c}
