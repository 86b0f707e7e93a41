"""Lab 5, the page pool."""
