"""
wrong: asks the module that knows
check: tokens_to_hide
phrase: module that holds the answer
"""


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    from xinfer_lab.labs.lab3.judge.hiding import TOKENS_TO_HIDE

    return TOKENS_TO_HIDE.truth({})
