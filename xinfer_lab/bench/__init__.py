"""Measures what a GPU makes of every residency, beside what others use."""
