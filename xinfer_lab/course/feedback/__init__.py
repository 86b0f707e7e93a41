"""Feedback for students: one page a notebook that needs no script, no font and no picture from anywhere else."""
