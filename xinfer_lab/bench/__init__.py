"""What a GPU makes of every residency, measured beside what others use."""
