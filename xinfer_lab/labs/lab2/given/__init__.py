"""What Lab 2's notebook gives: students import it, and it holds no answer."""
