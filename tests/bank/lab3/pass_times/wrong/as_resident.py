"""
wrong: forgets the first copy
check: pass_times
phrase: Streaming as fast as resident
"""


def pass_times(layers, t_trans, t_comp):
    return {
        "resident": layers * t_comp,
        "serial": layers * (t_trans + t_comp),
        "streamed": layers * t_comp,
    }
