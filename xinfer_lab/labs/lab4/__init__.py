"""Lab 4, cross-queue state."""
