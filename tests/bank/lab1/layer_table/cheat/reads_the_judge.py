"""
wrong: looks the answer up in the module of judges
check: layer_table
phrase: holds the answer
"""

from xinfer_lab.labs.lab1.judge.files import LAYERS


def layer_table(ranges):
    return LAYERS.truth({"ranges": ranges})
