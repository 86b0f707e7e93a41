"""
note: plays the two queues through, as decimals
"""


def pass_times(layers, t_trans, t_comp):
    copied = computed = before = 0.0
    for _ in range(layers):
        copied = max(copied, before) + t_trans
        before = computed
        computed = max(computed, copied) + t_comp
    return {"resident": float(layers * t_comp), "serial": float(layers * (t_trans + t_comp)), "streamed": computed}
