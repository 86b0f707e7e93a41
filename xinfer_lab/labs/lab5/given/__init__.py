"""What Lab 5's notebook gives: students import it, and it holds no answer."""
