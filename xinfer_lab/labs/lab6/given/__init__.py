"""What Lab 6's notebook gives: students import it, and it holds no answer."""
