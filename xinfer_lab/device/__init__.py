"""Devices: queues, fences, buffers, the command stream, and what can be said about a stream without running it.

A program asks a queue; the request becomes a record; `Device.submit` admits, checks, performs and keeps it. Which
device performs it (CUDA, emulated, threads, sizes alone) changes nothing of the rest.
"""
