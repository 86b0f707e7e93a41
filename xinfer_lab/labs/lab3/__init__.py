"""Lab 3, double-buffering."""
