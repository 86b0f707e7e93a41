"""Pictures of command streams and timelines: static SVG with words and a table, plain text, and Perfetto traces."""
