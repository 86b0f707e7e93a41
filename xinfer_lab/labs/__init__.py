"""A room for each lab: all that is particular to it. The engine that grades them is `xinfer_lab.grading`.

A lab is a folder with ``pieces.py`` (what is asked, and how an answer is recorded) and ``judge/judges.py`` (what is
right). It is found by its folder; nothing lists the labs. Beside these two a lab may have ``cases.py`` (what is
drawn), ``given/`` (what its notebook gives) and ``parts/`` (the course's own parts, which stand beside the part that
a piece asks for).
"""
