"""Lab 1, residency."""
