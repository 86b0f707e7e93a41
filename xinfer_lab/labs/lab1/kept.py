"""What of Lab 1 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

KEPT = (
    Part("layer_bytes", "layer_bytes", ("lab1.layer_bytes",), "counts the bytes of a layer", ("(config)",)),
    Part(
        "model_bytes",
        "model_bytes",
        ("lab1.model_bytes",),
        "counts the bytes of a model",
        ("(config, bytes_per_layer)",),
    ),
    Part(
        "kv_cache_bytes",
        "kv_cache_bytes",
        ("lab1.kv_cache_bytes",),
        "counts the bytes of the KV cache",
        ("(config, context, batch)",),
    ),
    Part(
        "read_header",
        "read_header",
        ("lab1.read_header", "lab1.refuse_header"),
        "reads a safetensors header",
        ("(file)",),
    ),
    Part(
        "tensor_ranges",
        "tensor_ranges",
        ("lab1.tensor_ranges", "lab1.refuse_ranges"),
        "finds tensors in a file",
        ("(header, data_start, file_size)",),
    ),
    Part(
        "decide_residency",
        "decide_residency",
        ("lab1.decide_residency", "lab1.refuse_budget"),
        "decides what stays within a budget",
        ("(sizes, budget)",),
    ),
)
