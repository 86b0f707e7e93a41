"""The pieces of each lab: the cases that are drawn, and how an answer is asked. Nothing here knows a right answer."""
