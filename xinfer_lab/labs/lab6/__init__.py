"""Lab 6, beat the link."""
