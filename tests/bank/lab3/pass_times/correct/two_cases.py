"""
note: by cases
"""


def pass_times(layers, t_trans, t_comp):
    serial = layers * (t_trans + t_comp)
    resident = layers * t_comp
    if t_trans <= t_comp:
        streamed = resident + t_trans
    else:
        streamed = layers * t_trans + t_comp
    return {"streamed": streamed, "serial": serial, "resident": resident}
