"""Runs a class: release, marking, gradebook, feedback, disputes, and the students' JupyterLab."""
