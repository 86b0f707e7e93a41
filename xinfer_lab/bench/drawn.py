"""Draws weights of any published shape on the GPU: a 65 GB model is ready in seconds, and nothing is on disk."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path

import torch

from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.synthetic import moments
from xinfer_lab.residency.weights import ModelWeights, SizedWeights

__all__ = ["DrawnWeights", "write_drawn_checkpoint"]

_HEADER = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}
_SHARD = 5 * 10**9
"""A new file begins after this many bytes, as in published checkpoints."""


class DrawnWeights(SizedWeights):
    """Normally distributed weights, seeded by ``seed`` and each tensor's name, so that every layer differs.

    ``device`` draws them: the same values each time on one kind of GPU, but not on another. Mean and deviation are
    those of `xinfer_lab.qwen2.synthetic`, so that activations keep their scale through any number of layers. The last
    tensor stays on ``device``, since loading reads in chunks.
    """

    def __init__(self, config: Qwen2Config, device: torch.device | str, seed: int = 0) -> None:
        super().__init__(config)
        self._shapes = expected_shapes(config)
        self._device, self._seed = torch.device(device), seed
        self._last: tuple[str, torch.Tensor] = ("", torch.empty(0, dtype=torch.uint8, device="cpu"))

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's bytes, 1-D uint8, where they were drawn."""
        if self._last[0] != name:
            self._last = ("", torch.empty(0, dtype=torch.uint8, device="cpu"))
            self._last = (name, self._draw(name).view(-1).view(torch.uint8))
        return self._last[1]

    def forget(self) -> None:
        """Let go of the last tensor."""
        self._last = ("", torch.empty(0, dtype=torch.uint8, device="cpu"))

    def _draw(self, name: str) -> torch.Tensor:
        mean, deviation = moments(name, self.config)
        generator = torch.Generator(self._device).manual_seed(zlib.crc32(f"{self._seed} {name}".encode()))
        shape = self._shapes[name]
        drawn = torch.randn(shape, generator=generator, device=self._device, dtype=self.config.dtype)
        return drawn.mul_(deviation).add_(mean)


def write_drawn_checkpoint(directory: Path, weights: ModelWeights) -> int:
    """Write ``weights`` as an ordinary checkpoint; returns the bytes of its weight files.

    Tensor by tensor, so it needs memory for the largest one only. ``directory`` is created; files in it are
    overwritten.
    """
    directory.mkdir(parents=True, exist_ok=True)
    shapes = expected_shapes(weights.config)
    groups: list[list[str]] = [[]]
    filled = 0
    for name in shapes:
        size = weights.nbytes(name) or 0
        if groups[-1] and filled + size > _SHARD:
            groups.append([])
            filled = 0
        groups[-1].append(name)
        filled += size
    total = 0
    weight_map: dict[str, str] = {}
    for number, names in enumerate(groups, 1):
        file = f"model-{number:05}-of-{len(groups):05}.safetensors"
        total += _write_shard(directory / file, weights, names, shapes)
        weight_map |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (directory / "config.json").write_text(json.dumps(weights.config.to_dict()), encoding="utf-8")
    return sum(file.stat().st_size for file in directory.glob("*.safetensors"))


def _write_shard(file: Path, weights: ModelWeights, names: Iterable[str], shapes: dict[str, tuple[int, ...]]) -> int:
    """One file in the safetensors format: the header's length (8 bytes), the header (JSON), then all tensors."""
    dtype, header, offset = weights.config.dtype, {}, 0
    for name in names:
        end = offset + math.prod(shapes[name]) * dtype.itemsize
        header[name] = {"dtype": _HEADER[dtype], "shape": list(shapes[name]), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode("ascii")
    text += b" " * (-len(text) % 8)
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            stream.write(weights.bytes(name).cpu().numpy().data)
    return offset
