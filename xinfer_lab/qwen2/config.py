"""The sizes and constants of a Qwen2 model, as its config.json states them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.qwen2.config_fields import LAYER_TYPES, Fields
from xinfer_lab.qwen2.errors import ConfigError
from xinfer_lab.qwen2.experts_config import ExpertsConfig
from xinfer_lab.qwen2.json_file import read_json

__all__ = ["DTYPES", "PUBLISHED", "ConfigError", "Qwen2Config"]

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
"""The weight types that are run, by the name config.json uses."""

_MOST_LAYERS = 4096
_LARGEST_SIZE = 2**24
"""Larger than any model's. The bytes of a tensor, and of a model, are then numbers that every part here can hold."""


@dataclass(frozen=True, kw_only=True)
class Qwen2Config:
    """A Qwen2 model's shape. Sizes count elements; raises ConfigError for a shape that cannot be.

    `sliding_window` is None unless some layer uses it; `window(layer)` says which. `layer_types`, where given, has one
    of "full_attention" and "sliding_attention" per layer; else layers from `max_window_layers` on are sliding.
    `max_position_embeddings` is the context length in tokens. `dtype` is the type of every weight. `experts` is None
    for a model whose layers all have a dense MLP (Qwen2); else (Qwen2-MoE) `has_experts(layer)` says which layers have
    some, and `intermediate_size` is that of the others.
    """

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6
    tie_word_embeddings: bool = False
    max_position_embeddings: int = 32768
    dtype: torch.dtype = torch.bfloat16
    sliding_window: int | None = None
    max_window_layers: int = 0
    layer_types: tuple[str, ...] | None = None
    eos_token_ids: tuple[int, ...] = ()
    experts: ExpertsConfig | None = None

    def __post_init__(self) -> None:
        for name in (
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "intermediate_size",
            "vocab_size",
            "rms_norm_eps",
            "rope_theta",
            "max_position_embeddings",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be greater than 0, but is {getattr(self, name)}")
        self._check_largest()
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigError(
                f"num_attention_heads must be a multiple of num_key_value_heads, but "
                f"{self.num_attention_heads} is no multiple of {self.num_key_value_heads}"
            )
        if self.head_dim % 2:
            raise ConfigError(f"head_dim must be even, since rotary embedding turns pairs, but is {self.head_dim}")
        if self.dtype not in DTYPES.values():
            raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, but is {self.dtype}")
        self._check_windows()

    def _check_largest(self) -> None:
        """No shape so large that counting or allocating it would fail somewhere inside."""
        wide = {
            "num_attention_heads * head_dim": self.num_attention_heads * self.head_dim,
            **{name: getattr(self, name) for name in ("hidden_size", "intermediate_size", "vocab_size")},
        }
        if self.num_hidden_layers > _MOST_LAYERS:
            raise ConfigError(f"num_hidden_layers must be at most {_MOST_LAYERS}, but is {self.num_hidden_layers}")
        for name, size in wide.items():
            if size > _LARGEST_SIZE:
                raise ConfigError(f"{name} must be at most {_LARGEST_SIZE}, but is {size}")

    def _check_windows(self) -> None:
        if self.sliding_window is not None and self.sliding_window <= 0:
            raise ConfigError(f"sliding_window must be greater than 0, but is {self.sliding_window}")
        if self.layer_types is None:
            if self.experts is not None and self.sliding_window is not None:
                raise ConfigError(
                    "a model with experts and use_sliding_window must state layer_types: versions of transformers do "
                    "not agree on the layers that are meant without them"
                )
            return
        if len(self.layer_types) != self.num_hidden_layers:
            raise ConfigError(
                f"layer_types must name each of the {self.num_hidden_layers} layers, "
                f"but has {len(self.layer_types)} entries"
            )
        for kind in self.layer_types:
            if kind not in LAYER_TYPES:
                raise ConfigError(f"layer_types knows {' and '.join(LAYER_TYPES)}, but has {kind!r}")
        if self.sliding_window is None and "sliding_attention" in self.layer_types:
            raise ConfigError(
                "layer_types has sliding_attention, but no sliding_window is in use "
                "(sliding_window absent, or use_sliding_window false)"
            )

    def window(self, layer: int) -> int | None:
        """How many keys a query of this layer sees, itself included; None when it sees all before it."""
        if not 0 <= layer < self.num_hidden_layers:
            raise IndexError(f"layer must be in 0..{self.num_hidden_layers - 1}, but is {layer}")
        if self.layer_types is not None:
            return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None
        return self.sliding_window if layer >= self.max_window_layers else None

    def has_experts(self, layer: int) -> bool:
        """Whether a layer has experts, a router and a shared expert, instead of a dense MLP."""
        return self.experts is not None and self.experts.in_layer(layer)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "config") -> "Qwen2Config":
        """Reads the content of a config.json, of transformers 4 or 5. `source` begins each error's message.

        Raises ConfigError, with the key's name, for another model type, a missing key, a value of the wrong type, a
        rope type other than default, an activation other than silu, quantised weights, or sizes that cannot be.
        """
        fields = Fields(data, source)
        model_type = fields.require_supported()
        heads = fields.integer("num_attention_heads")
        hidden = fields.integer("hidden_size")
        window = fields.sliding_window()
        try:
            return cls(
                hidden_size=hidden,
                num_hidden_layers=fields.integer("num_hidden_layers"),
                num_attention_heads=heads,
                # Present but null means one key head for each query head; absent is refused rather than guessed.
                num_key_value_heads=heads
                if fields.is_null("num_key_value_heads")
                else fields.integer("num_key_value_heads"),
                head_dim=fields.head_dim(hidden, heads),
                intermediate_size=fields.integer("intermediate_size"),
                vocab_size=fields.integer("vocab_size"),
                rms_norm_eps=fields.number("rms_norm_eps"),
                rope_theta=fields.rope_theta(),
                tie_word_embeddings=fields.boolean("tie_word_embeddings", False),
                max_position_embeddings=fields.integer("max_position_embeddings"),
                dtype=DTYPES[fields.dtype_name(tuple(DTYPES), "float32")],
                sliding_window=window,
                max_window_layers=fields.integer("max_window_layers", 28 if window is not None else 0),
                layer_types=fields.strings("layer_types"),
                eos_token_ids=fields.token_ids("eos_token_id"),
                experts=ExpertsConfig.from_fields(fields) if model_type == "qwen2_moe" else None,
            )
        except ConfigError as error:
            message = str(error)
            raise ConfigError(message if message.startswith(source) else f"{source}: {message}") from None

    @classmethod
    def from_file(cls, path: str | Path) -> "Qwen2Config":
        """Reads config.json: `path` is that file or the directory that holds it.

        A generation_config.json beside it decides where text ends, as in transformers: if it names no end-of-text id,
        there is none.
        """
        path = Path(path)
        file = path / "config.json" if path.is_dir() else path
        config = cls.from_dict(_read_json(file), str(file))
        generation = file.with_name("generation_config.json")
        if generation.is_file():
            ids = Fields(_read_json(generation), str(generation)).token_ids("eos_token_id")
            return replace(config, eos_token_ids=ids)
        return config

    def to_dict(self) -> dict[str, Any]:
        """The content of a config.json that `transformers` (4 or 5) and `from_dict` load as this model."""
        dtype = next(name for name, value in DTYPES.items() if value == self.dtype)
        data: dict[str, Any] = {
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "hidden_act": "silu",
            "attention_dropout": 0.0,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.intermediate_size,
            "vocab_size": self.vocab_size,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tie_word_embeddings,
            "max_position_embeddings": self.max_position_embeddings,
            "torch_dtype": dtype,
            "use_sliding_window": self.sliding_window is not None,
            "sliding_window": self.sliding_window,
            "max_window_layers": self.max_window_layers,
            "eos_token_id": list(self.eos_token_ids) or None,
        }
        if self.layer_types is not None:
            data["layer_types"] = list(self.layer_types)
        if self.experts is not None:
            data |= {"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "qkv_bias": True}
            data |= self.experts.to_dict()
        return data


def _read_json(file: Path) -> Any:
    if not file.is_file():
        raise ConfigError(f"{file}: no such file; a Hugging Face checkpoint directory holds config.json")
    return read_json(file, ConfigError)


def _published(hidden: int, layers: int, heads: int, kv: int, intermediate: int, vocab: int, tied: bool) -> Qwen2Config:
    return Qwen2Config(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        head_dim=hidden // heads,
        intermediate_size=intermediate,
        vocab_size=vocab,
        tie_word_embeddings=tied,
        eos_token_ids=(151643,),
    )


PUBLISHED: dict[str, Qwen2Config] = {
    "0.5b": _published(896, 24, 14, 2, 4864, 151936, True),
    "1.5b": _published(1536, 28, 12, 2, 8960, 151936, True),
    "7b": _published(3584, 28, 28, 4, 18944, 152064, False),
    "14b": _published(5120, 48, 40, 8, 13824, 152064, False),
    "32b": _published(5120, 64, 40, 8, 27648, 152064, False),
    "72b": _published(8192, 80, 64, 8, 29568, 152064, False),
}
"""The published Qwen2.5 sizes in bfloat16, by name; sizes as in their config.json files."""
