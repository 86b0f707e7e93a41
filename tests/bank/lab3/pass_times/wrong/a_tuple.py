"""
wrong: another form
check: pass_times
phrase: not of the form
"""


def pass_times(layers, t_trans, t_comp):
    return layers * t_comp, layers * (t_trans + t_comp), t_trans + (layers - 1) * max(t_trans, t_comp) + t_comp
