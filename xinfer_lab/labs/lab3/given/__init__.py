"""What Lab 3's notebook gives: students import it, and it holds no answer."""
