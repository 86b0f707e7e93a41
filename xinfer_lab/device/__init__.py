"""Devices: queues, fences, buffers, the command stream, and what can be said about a stream without running it."""
