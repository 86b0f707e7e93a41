"""The lossless codec: bfloat16 weights with short codes for their exponents."""
