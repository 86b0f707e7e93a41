"""What is right in Lab 5, and what known wrong ideas would answer. No answer may import from here."""
