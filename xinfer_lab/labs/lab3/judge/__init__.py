"""What is right in Lab 3, and what known wrong ideas would answer. No answer may import from here."""
