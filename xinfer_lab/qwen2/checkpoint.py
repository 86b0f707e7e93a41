"""A Qwen2 checkpoint on disk: its config, and its weights read by memory map."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import torch

from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.filemap import map_bytes
from xinfer_lab.qwen2.header import WEIGHT_DTYPES, TensorEntry, read_header
from xinfer_lab.qwen2.json_file import read_json
from xinfer_lab.qwen2.layout import expert_layout, expert_tensor_name, resident_tensors, tensor_name, tensor_shapes

__all__ = ["Checkpoint", "TensorEntry", "expected_shapes"]

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
_STORED = "rotary_emb.inv_freq"
"""How tensors end that are stored although they are known: rotary frequencies."""

_OTHER_FORMATS = ("*.bin", "*.gguf", "*.pt", "*.pth", "*.msgpack", "*.h5", "*.onnx", "*.safetensors")


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

        Reads the config and the headers; data only where a tied model stores a head, to compare it. What the files hold
        decides where config.json says otherwise: `config.dtype` is the type of the weights, nothing is converted; and a
        stored head of other values than the embedding is run, as in transformers 5. Raises CheckpointError or
        ConfigError for a checkpoint that is damaged, incomplete, or holds tensors that a Qwen2 model has no use for.
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
        _refuse_adapter(directory)
        if not (directory / "config.json").is_file():
            if path.is_file():
                raise CheckpointError(f"{path}: its config.json is missing; it has to lie beside the file")
            raise CheckpointError(f"{directory}: no config.json there; a Hugging Face checkpoint directory was wanted")
        config = Qwen2Config.from_file(directory)
        entries = _entries(directory) if path.is_dir() else read_header(path)
        dtype = _validate(path, config, entries)
        checkpoint = cls(path, replace(config, dtype=dtype), entries)
        if config.tie_word_embeddings and _HEAD in entries and not checkpoint._same_bytes(_HEAD, _EMBEDDING):
            checkpoint.config = replace(checkpoint.config, tie_word_embeddings=False)
        return checkpoint

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

    def _same_bytes(self, first: str, second: str) -> bool:
        same = torch.equal(self.bytes(first), self.bytes(second))
        self.unmap()
        return same

    def _map(self, file: Path) -> torch.Tensor:
        if not self._open:
            raise ValueError(f"{self.path}: this checkpoint is closed; open it again to read from it")
        if file not in self._maps:
            self._maps[file] = map_bytes(file)
        return self._maps[file]


def expected_shapes(config: Qwen2Config) -> dict[str, tuple[int, ...]]:
    """Every tensor that a checkpoint of this config must have, by its name there; a tied model needs no lm_head."""
    return dict(_expected(config))


def _expected(config: Qwen2Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """One tensor after the other: a config may ask for more of them than there is memory for their names."""
    yield from ((place.name, place.shape) for place in resident_tensors(config).tensors)
    expert = {place.name: place.shape for place in expert_layout(config).tensors} if config.experts else {}
    for index in range(config.num_hidden_layers):
        for group in tensor_shapes(config, index).values():
            yield from ((tensor_name(index, name), shape) for name, shape in group.items())
        if config.experts is not None and config.has_experts(index):
            for number in range(config.experts.num_experts):
                yield from ((expert_tensor_name(index, number, name), shape) for name, shape in expert.items())


def _refuse_adapter(directory: Path) -> None:
    if (directory / "adapter_config.json").is_file() and any(directory.glob("adapter_model.*")):
        raise CheckpointError(
            f"{directory}: there is an adapter (adapter_config.json), which is not applied here; merge it into the "
            f"model and save that, or move it elsewhere to run the model without it"
        )


def _entries(directory: Path) -> dict[str, TensorEntry]:
    if (directory / _SINGLE).is_file():
        return read_header(directory / _SINGLE)
    index = directory / _INDEX
    if not index.is_file():
        other = next((file.name for kind in _OTHER_FORMATS for file in sorted(directory.glob(kind))), None)
        instead = f"; {other} is of a format that is not read here: save the model as safetensors" if other else ""
        raise CheckpointError(f"{directory}: neither {_SINGLE} nor {_INDEX} is there{instead}")
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
    content = read_json(index, CheckpointError)
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
    known = set()
    first: TensorEntry | None = None
    for name, shape in _expected(config):
        entry = entries.get(name)
        if entry is None:
            raise CheckpointError(
                f"{path}: tensor {name} is missing; its config.json asks for "
                f"{config.num_hidden_layers} layers and "
                f"{'tied' if config.tie_word_embeddings else 'untied'} embeddings{_renamed(name, entries)}"
            )
        known.add(name)
        first = first or entry
        _check_tensor(entry, shape, first)
    assert first is not None
    if config.tie_word_embeddings and _HEAD in entries:
        known.add(_HEAD)
        _check_tensor(entries[_HEAD], (config.vocab_size, config.hidden_size), first)
    extra = [name for name in entries if name not in known and not name.endswith(_STORED)]
    if extra:
        shown = ", ".join(extra[:3]) + (", ..." if len(extra) > 3 else "")
        raise CheckpointError(
            f"{path}: {len(extra)} tensors are no part of the Qwen2 model in config.json ({shown}); "
            f"is this another model, or another model's config?"
        )
    return WEIGHT_DTYPES[first.dtype]


def _renamed(name: str, entries: Mapping[str, TensorEntry]) -> str:
    """The end of a sentence about a missing tensor: what the file calls it, if only by a longer or a shorter name."""
    short = name.removeprefix("model.")
    found = next((other for other in entries if other.endswith(f".{name}") or other == short != name), None)
    return f". There is {found}: the names of a model that was wrapped, or saved in part; rename them" if found else ""


def _check_tensor(entry: TensorEntry, shape: tuple[int, ...], first: TensorEntry) -> None:
    if entry.shape != shape:
        raise CheckpointError(
            f"{entry.file}: tensor {entry.name} should have the shape {list(shape)} by config.json, "
            f"but has {list(entry.shape)}"
        )
    if entry.dtype not in WEIGHT_DTYPES:
        raise CheckpointError(
            f"{entry.file}: tensor {entry.name} is {entry.dtype}, but weights must be one of {', '.join(WEIGHT_DTYPES)}"
        )
    if entry.dtype != first.dtype:
        raise CheckpointError(
            f"{entry.file}: tensor {entry.name} is {entry.dtype}, but {first.name} is {first.dtype}; "
            f"all weights must have one type"
        )
