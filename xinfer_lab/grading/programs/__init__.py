"""Pieces that are answered by a queue program: recorded as a command stream, judged from the stream alone."""
