"""A Qwen2 checkpoint on disk: its config, and its weights read by memory map."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import torch

from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.filemap import map_bytes
from xinfer_lab.qwen2.header import WEIGHT_DTYPES, TensorEntry, read_header
from xinfer_lab.qwen2.layout import expert_layout, expert_tensor_name, resident_tensors, tensor_name, tensor_shapes

__all__ = ["Checkpoint", "TensorEntry", "expected_shapes"]

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


class Checkpoint:
    """The weights of one model, validated against its config; nothing is copied into memory.

    Files are mapped read-only and shared, so their pages are the system's file cache. The tensors handed out are views
    of a map: they must not be written to (the process would be stopped by the system), and a file stays mapped for as
    long as the checkpoint is open or a view of it is alive. Closing and using it as a context manager are the same.
    """

    def __init__(self, path: Path, config: Qwen2Config, entries: Mapping[str, TensorEntry]) -> None:
        self.path = path
        self.config = config
        self._entries = dict(entries)
        self._maps: dict[Path, torch.Tensor] = {}
        self._open = True

    @classmethod
    def open(cls, path: str | Path) -> "Checkpoint":
        """Opens a directory with config.json and model.safetensors, or shards with an index; or one .safetensors file
        beside a config.json.

        Reads the config and the headers, no data. `config.dtype` is the type of the weights, whatever config.json says:
        nothing is converted. Raises CheckpointError or ConfigError for a checkpoint that is damaged, incomplete, or
        holds tensors that a Qwen2 model has no use for.
        """
        path = Path(path)
        try:
            return cls._open_path(path)
        except OSError as error:
            raise CheckpointError(f"{error.filename or path}: cannot be read ({error.strerror or error})") from None

    @classmethod
    def _open_path(cls, path: Path) -> "Checkpoint":
        if not path.exists():
            raise CheckpointError(f"{path}: no such file or directory")
        directory = path if path.is_dir() else path.parent
        if path.is_file() and path.suffix != ".safetensors":
            raise CheckpointError(f"{path}: a checkpoint is a directory or a .safetensors file, but this is neither")
        if path.is_file():
            read_header(path)  # a file that is none is told so before anything is said of what lies beside it
        if not (directory / "config.json").is_file():
            if path.is_file():
                raise CheckpointError(f"{path}: its config.json is missing; it has to lie beside the file")
            raise CheckpointError(f"{directory}: no config.json there; a Hugging Face checkpoint directory was wanted")
        config = Qwen2Config.from_file(directory)
        entries = _entries(directory) if path.is_dir() else read_header(path)
        dtype = _validate(path, config, entries)
        return cls(path, replace(config, dtype=dtype), entries)

    def names(self) -> tuple[str, ...]:
        """Names of all tensors, file by file, in the order of their offsets."""
        return tuple(self._entries)

    def entry(self, name: str) -> TensorEntry:
        """Where a tensor lies. Raises CheckpointError for a name that is not there."""
        try:
            return self._entries[name]
        except KeyError:
            raise CheckpointError(f"{self.path}: no tensor {name}") from None

    def bytes(self, name: str) -> torch.Tensor:
        """A tensor's bytes: uint8 [nbytes], a view of the memory map. Reading it blocks until the disk delivers."""
        entry = self.entry(name)
        return self._map(entry.file)[entry.offset : entry.offset + entry.nbytes]

    def files(self) -> dict[str, Path]:
        """The weight files by their names; those that hold a tensor."""
        return {entry.file.name: entry.file for entry in self._entries.values()}

    def file_bytes(self, name: str) -> torch.Tensor:
        """All bytes of the weight file called ``name``, its header included: the memory map itself, uint8."""
        return self._map(self.files()[name])

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor with its dtype and shape: a view of the memory map where its offset is a multiple of its item size,
        else a copy."""
        entry = self.entry(name)
        if entry.dtype not in WEIGHT_DTYPES:
            raise CheckpointError(f"{entry.file}: tensor {name} is {entry.dtype}, which no weight here has")
        data = self.bytes(name)
        if entry.offset % WEIGHT_DTYPES[entry.dtype].itemsize:
            data = data.clone()
        return data.view(WEIGHT_DTYPES[entry.dtype]).view(entry.shape)

    def unmap(self) -> None:
        """Lets go of the files' pages until the next read, which maps them again. Views that are alive keep their
        map.
        """
        self._maps.clear()

    def close(self) -> None:
        """Lets go of the files; further reads raise ValueError. May be called again."""
        self._open = False
        self._maps.clear()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _map(self, file: Path) -> torch.Tensor:
        if not self._open:
            raise ValueError(f"{self.path}: this checkpoint is closed; open it again to read from it")
        if file not in self._maps:
            self._maps[file] = map_bytes(file)
        return self._maps[file]


def expected_shapes(config: Qwen2Config) -> dict[str, tuple[int, ...]]:
    """Every tensor that a checkpoint of this config must have, by its name there; a tied model needs no lm_head."""
    shapes = {place.name: place.shape for place in resident_tensors(config).tensors}
    expert = {place.name: place.shape for place in expert_layout(config).tensors} if config.experts else {}
    for index in range(config.num_hidden_layers):
        for group in tensor_shapes(config, index).values():
            shapes |= {tensor_name(index, name): shape for name, shape in group.items()}
        if config.experts is not None and config.has_experts(index):
            for number in range(config.experts.num_experts):
                shapes |= {expert_tensor_name(index, number, name): shape for name, shape in expert.items()}
    return shapes


def _entries(directory: Path) -> dict[str, TensorEntry]:
    if (directory / _SINGLE).is_file():
        return read_header(directory / _SINGLE)
    index = directory / _INDEX
    if not index.is_file():
        raise CheckpointError(f"{directory}: neither {_SINGLE} nor {_INDEX} is there")
    shard_of = _weight_map(index)
    entries: dict[str, TensorEntry] = {}
    for shard in sorted(set(shard_of.values())):
        if not (directory / shard).is_file():
            raise CheckpointError(f"{index}: it names the shard {shard}, but {directory} has no such file")
        header = read_header(directory / shard)
        for name, entry in header.items():
            if shard_of.get(name) != shard:
                raise CheckpointError(
                    f"{entry.file}: it holds tensor {name}, but {_INDEX} "
                    f"{'places it in ' + shard_of[name] if name in shard_of else 'does not name it'}"
                )
        entries |= header
    for name, shard in shard_of.items():
        if name not in entries:
            raise CheckpointError(f"{directory / shard}: tensor {name} is missing; {_INDEX} says it is in this shard")
    return entries


def _weight_map(index: Path) -> dict[str, str]:
    try:
        content = json.loads(index.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{index}: not valid JSON ({error})") from None
    mapping = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(mapping, dict) or not mapping:
        raise CheckpointError(f"{index}: weight_map must be an object of tensor name -> shard, but is {mapping!r}")
    for name, shard in mapping.items():
        if not isinstance(shard, str) or not shard or "/" in shard or "\\" in shard or shard in (".", ".."):
            raise CheckpointError(
                f"{index}: the shard of {name} must be the name of a file beside the index, but is {shard!r}"
            )
    return mapping


def _validate(path: Path, config: Qwen2Config, entries: Mapping[str, TensorEntry]) -> torch.dtype:
    """The one dtype of all weights, once every weight is there with its shape and nothing else is."""
    expected = expected_shapes(config)
    first: TensorEntry | None = None
    for name, shape in expected.items():
        entry = entries.get(name)
        if entry is None:
            raise CheckpointError(
                f"{path}: tensor {name} is missing; its config.json asks for "
                f"{config.num_hidden_layers} layers and "
                f"{'tied' if config.tie_word_embeddings else 'untied'} embeddings"
            )
        if entry.shape != shape:
            raise CheckpointError(
                f"{entry.file}: tensor {name} should have the shape {list(shape)} by config.json, "
                f"but has {list(entry.shape)}"
            )
        if entry.dtype not in WEIGHT_DTYPES:
            raise CheckpointError(
                f"{entry.file}: tensor {name} is {entry.dtype}, but weights must be one of {', '.join(WEIGHT_DTYPES)}"
            )
        first = first or entry
        if entry.dtype != first.dtype:
            raise CheckpointError(
                f"{entry.file}: tensor {name} is {entry.dtype}, but {first.name} is {first.dtype}; "
                f"all weights must have one type"
            )
    assert first is not None
    extra = [name for name in entries if name not in expected and not _harmless(name, config)]
    if extra:
        shown = ", ".join(extra[:3]) + (", ..." if len(extra) > 3 else "")
        raise CheckpointError(
            f"{path}: {len(extra)} tensors are no part of the Qwen2 model in config.json ({shown}); "
            f"is this another model, or another model's config?"
        )
    return WEIGHT_DTYPES[first.dtype]


def _harmless(name: str, config: Qwen2Config) -> bool:
    """Stored copies of what is known without them: rotary frequencies, and the head of a tied model."""
    return name.endswith("rotary_emb.inv_freq") or (config.tie_word_embeddings and name == "lm_head.weight")
