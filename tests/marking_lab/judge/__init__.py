"""What is right in the small lab."""
