"""Makes up small checkpoints in the Hugging Face layout: the same spec gives the same bytes on every machine.

Tests and labs need models of any shape, at once and offline. The weights are scaled so that activations keep their size
through any number of layers: otherwise NaN or zeros would hide mistakes.
"""

import json
import math
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from xinfer_lab.qwen2.byte_vocabulary import byte_tokenizer
from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.config import DTYPES, Qwen2Config
from xinfer_lab.qwen2.errors import CheckpointError, ConfigError
from xinfer_lab.qwen2.experts_config import ExpertsConfig

__all__ = ["SyntheticSpec", "is_made_up", "moments", "synthetic_tensor", "write_checkpoint"]

_MARKER = "synthetic.json"
_INDEX = "model.safetensors.index.json"
_SPREAD = 2.0
"""Standard deviation of the logits: far enough apart that greedy choices are clear, close enough to sample from."""


@dataclass(frozen=True, kw_only=True)
class SyntheticSpec:
    """A model to make up. `dtype` is "float32", "float16" or "bfloat16"; `shards` is the number of weight files;
    `head_dim` None means hidden / heads. With `experts` each layer has so many, of which a token takes
    `experts_per_token`; `expert_intermediate` None means half of `intermediate`, which the shared expert has. Raises
    ConfigError for sizes that cannot be."""

    layers: int = 6
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int | None = None
    intermediate: int = 160
    vocab: int = 256
    dtype: str = "float32"
    seed: int = 0
    shards: int = 1
    tied: bool = False
    context: int = 32768
    experts: int = 0
    experts_per_token: int = 2
    expert_intermediate: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, but is {self.dtype!r}")
        if self.seed < 0:
            raise ConfigError(f"seed must be at least 0, but is {self.seed}")
        tensors = len(expected_shapes(self.config()))
        if not 1 <= self.shards <= tensors:
            raise ConfigError(f"shards must be 1 to {tensors}, the number of tensors, but is {self.shards}")

    def config(self) -> Qwen2Config:
        """The config of the model."""
        if self.head_dim is None and (self.heads <= 0 or self.hidden % self.heads):
            raise ConfigError(
                f"hidden must be a multiple of heads, but {self.hidden} is no multiple of {self.heads}; "
                f"choose other heads, or give head_dim (on the command line --head-dim)"
            )
        return Qwen2Config(
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim or self.hidden // self.heads,
            intermediate_size=self.intermediate,
            vocab_size=self.vocab,
            tie_word_embeddings=self.tied,
            max_position_embeddings=self.context,
            dtype=DTYPES[self.dtype],
            experts=self._experts(),
        )

    def _experts(self) -> ExpertsConfig | None:
        if self.experts == 0:
            return None
        return ExpertsConfig(
            num_experts=self.experts,
            num_experts_per_tok=self.experts_per_token,
            moe_intermediate_size=max(1, self.intermediate // 2)
            if self.expert_intermediate is None
            else self.expert_intermediate,
            shared_expert_intermediate_size=self.intermediate,
        )


def is_made_up(path: str | Path) -> bool:
    """Whether the checkpoint at `path`, a directory or a file in one, was written by `write_checkpoint`."""
    path = Path(path)
    return ((path if path.is_dir() else path.parent) / _MARKER).is_file()


def write_checkpoint(directory: str | Path, spec: SyntheticSpec, *, force: bool = False) -> Path:
    """Writes the checkpoint that `spec` describes and returns its directory.

    A new or empty directory appears complete or not at all. One that holds an earlier synthetic checkpoint is replaced
    file by file, config.json last. One that holds anything else is refused with CheckpointError, unless `force`: then
    model files in it are replaced and other files left alone. Needs memory for the largest shard.
    """
    directory = Path(directory)
    try:
        _write(directory, spec, force)
    except OSError as error:
        raise CheckpointError(f"{error.filename or directory}: cannot be written ({error.strerror or error})") from None
    return directory


def _write(directory: Path, spec: SyntheticSpec, force: bool) -> None:
    if directory.exists() and not directory.is_dir():
        raise CheckpointError(f"{directory}: a directory was wanted, but this is a file")
    held = sorted(item.name for item in directory.iterdir()) if directory.exists() else []
    if held and _MARKER not in held and not force:
        raise CheckpointError(
            f"{directory}: holds files that are no synthetic checkpoint ({', '.join(held[:3])}); "
            f"choose another directory, or force overwriting"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    made = directory.parent / f".{directory.name}-{uuid.uuid4().hex}"
    made.mkdir()
    try:
        _write_files(made, spec)
        if held:
            _replace_files(directory, made)
        else:
            if directory.exists():
                directory.rmdir()
            os.replace(made, directory)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def synthetic_tensor(name: str, shape: tuple[int, ...], config: Qwen2Config, seed: int) -> torch.Tensor:
    """One weight: uniform, seeded by `seed` and the tensor's name, so that every layer differs.

    Products keep the scale of their input (a standard deviation of 1 / sqrt(fan-in)); what a layer adds to the residual
    is scaled by 1 / sqrt(2 layers) (as in GPT-2), so that the sum over any number of layers stays near 1.
    """
    mean, deviation = moments(name, config)
    # Raw bits of PCG64, which NumPy promises not to change, become numbers by exact steps: the same on every machine.
    bits = np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode())]))
    count = math.prod(shape)
    words = bits.random_raw(-(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]
    unit = (words >> 8).astype(np.float32)
    unit *= np.float32(2.0**-23)
    unit -= np.float32(1.0)
    unit *= np.float32(deviation * math.sqrt(3.0))
    unit += np.float32(mean)
    return torch.from_numpy(unit).reshape(shape).to(config.dtype)


def moments(name: str, config: Qwen2Config) -> tuple[float, float]:
    """Mean and standard deviation of a weight's elements."""
    hidden = config.hidden_size
    residual = 1.0 / math.sqrt(2 * config.num_hidden_layers)
    if name.endswith("norm.weight"):
        return 1.0, 0.1
    if name.endswith(".bias"):
        return 0.0, 0.1
    if name == "lm_head.weight" or (name == "model.embed_tokens.weight" and config.tie_word_embeddings):
        return 0.0, _SPREAD / math.sqrt(hidden)
    if name == "model.embed_tokens.weight":
        return 0.0, 1.0
    if name.endswith("o_proj.weight"):
        return 0.0, residual / math.sqrt(config.num_attention_heads * config.head_dim)
    if ".experts." in name and name.endswith("down_proj.weight") and config.experts is not None:
        return 0.0, residual / math.sqrt(config.experts.moe_intermediate_size)
    if ".shared_expert." in name and name.endswith("down_proj.weight") and config.experts is not None:
        return 0.0, residual / math.sqrt(config.experts.shared_expert_intermediate_size)
    if name.endswith("down_proj.weight"):
        return 0.0, residual / math.sqrt(config.intermediate_size)
    return 0.0, 1.0 / math.sqrt(hidden)


def _write_files(directory: Path, spec: SyntheticSpec) -> None:
    config = spec.config()
    groups = list(_shards(expected_shapes(config), spec.shards))
    weight_map: dict[str, str] = {}
    for number, names in enumerate(groups, 1):
        file = "model.safetensors" if len(groups) == 1 else f"model-{number:05}-of-{len(groups):05}.safetensors"
        tensors = {name: synthetic_tensor(name, shape, config, spec.seed) for name, shape in names.items()}
        try:
            save_file(tensors, directory / file, metadata={"format": "pt"})
        except SafetensorError as error:  # a full disk, among others
            raise CheckpointError(f"{directory / file}: cannot be written ({error})") from None
        weight_map |= dict.fromkeys(names, file)
    if len(groups) > 1:
        total = sum(math.prod(shape) for names in groups for shape in names.values()) * config.dtype.itemsize
        _write_json(directory / _INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})
    if spec.vocab >= 256:
        tokenizer, tokenizer_config = byte_tokenizer(spec.context)
        _write_json(directory / "tokenizer.json", tokenizer)
        _write_json(directory / "tokenizer_config.json", tokenizer_config)
    _write_json(directory / "generation_config.json", {"do_sample": False})
    _write_json(directory / _MARKER, asdict(spec))
    _write_json(directory / "config.json", config.to_dict())


def _shards(shapes: dict[str, tuple[int, ...]], count: int) -> Iterator[dict[str, tuple[int, ...]]]:
    """Tensors in order, cut into `count` files of about equal size, none of them empty."""
    names = list(shapes)
    start = 0
    for files_left in range(count, 0, -1):
        share = sum(math.prod(shapes[name]) for name in names[start:]) / files_left
        end, filled = start, 0
        while end < len(names) - (files_left - 1) and (filled < share or files_left == 1):
            filled += math.prod(shapes[names[end]])
            end += 1
        yield {name: shapes[name] for name in names[start:end]}
        start = end


def _write_json(file: Path, data: dict[str, Any]) -> None:
    file.write_bytes((json.dumps(data, indent=2, sort_keys=True) + "\n").encode("ascii"))


def _replace_files(directory: Path, made: Path) -> None:
    # Without config.json the directory is no checkpoint, so that one cut short in the middle is refused, not misread.
    (directory / "config.json").unlink(missing_ok=True)
    new = sorted((item.name for item in made.iterdir()), key=lambda name: (name == "config.json", name))
    for old in [*directory.glob("model*.safetensors"), directory / _INDEX]:
        if old.name not in new:
            old.unlink(missing_ok=True)
    for name in new:
        os.replace(made / name, directory / name)
