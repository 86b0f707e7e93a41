"""What is right in Lab 6, and what known wrong ideas would answer. No answer may import from here."""
