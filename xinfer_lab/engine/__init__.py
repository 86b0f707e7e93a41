"""The engine that a student built: their parts from ``my_engine/``, the course's where one is missing, put together."""
