"""What Lab 4's notebook gives: students import it, and it holds no answer."""
