"""Residency: where a model's layers, cache and experts live, and how they come to the device in time.

The forward pass is written once and asks a `LayerSource` for weights. Each way of keeping layers is one class:
resident, serial, streaming, planned, compressed, paged. All give the same bytes.
"""
