"""
wrong: imports what knows the truth
check: victim
phrase: module that holds the answer
"""

from xinfer_lab.grading import find_piece


def victim(held, layer, layers):
    from xinfer_lab.grading.judges import judge_of

    return judge_of("lab6.victim").truth({"held": held, "layer": layer, "layers": layers})
