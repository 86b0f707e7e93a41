"""Draws command streams and timelines: static SVG with words and a table, plain text, and Perfetto traces.

Every view is a pure function of the stream. The drawing, the sentences and the table are made from the same data, so a
reader who does not see the picture misses nothing, and a test can compare bytes.
"""
