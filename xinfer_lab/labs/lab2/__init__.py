"""Lab 2, the copy queue."""
