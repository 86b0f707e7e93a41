"""What of Lab 1 the student's engine keeps."""

from __future__ import annotations

from xinfer_lab.grading.part import Part

__all__ = ["KEPT"]

KEPT = (
    Part("layer_bytes", "layer_bytes", ("lab1.layer_bytes",), "counts the bytes of a layer"),
    Part("model_bytes", "model_bytes", ("lab1.model_bytes",), "counts the bytes of a model"),
    Part("kv_cache_bytes", "kv_cache_bytes", ("lab1.kv_cache_bytes",), "counts the bytes of the KV cache"),
    Part("read_header", "read_header", ("lab1.read_header", "lab1.refuse_header"), "reads a safetensors header"),
    Part("tensor_ranges", "tensor_ranges", ("lab1.tensor_ranges", "lab1.refuse_ranges"), "finds tensors in a file"),
    Part(
        "decide_residency",
        "decide_residency",
        ("lab1.decide_residency", "lab1.refuse_budget"),
        "decides what stays within a budget",
    ),
)
