"""Typed reading of the keys of a config.json: each value is checked, each complaint names its key."""

import json
import math
from collections.abc import Mapping
from typing import Any

from xinfer_lab.qwen2.config_keys import ABSENT, KEYS, Only
from xinfer_lab.qwen2.errors import ConfigError, shown

__all__ = ["LAYER_TYPES", "Fields"]

LAYER_TYPES = ("full_attention", "sliding_attention")
"""What `layer_types` may say of a layer."""

_MODEL_TYPES = ("qwen2", "qwen2_moe")
_DEFAULT_WINDOW = 4096
_LARGEST_ID = 2**63 - 1
"""Token ids are int64."""


class Fields:
    """The keys of one config.json. Every method raises ConfigError, beginning with `source`, for a bad value."""

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        if not isinstance(data, Mapping):
            raise ConfigError(f"{source}: a JSON object was wanted, but it holds a {type(data).__name__}")
        self._data = data
        self._source = source

    def error(self, message: str) -> ConfigError:
        """A ConfigError that names the file."""
        return ConfigError(f"{self._source}: {message}")

    def is_null(self, key: str) -> bool:
        """Whether the key is there with the value null."""
        return self._data.get(key, ABSENT) is None

    def _get(self, key: str, default: Any, null: Any = ABSENT) -> Any:
        """The value; `default` where the key is absent, `null` where it is null. `ABSENT` for them: refused."""
        value = self._data.get(key, default)
        if value is None:
            value = null
        if value is ABSENT:
            state = "null" if key in self._data else "missing"
            raise self.error(f"{key} is {state}; a Qwen2 config must state it")
        return value

    def _wrong(self, key: str, wanted: str, value: Any, why: str = "") -> ConfigError:
        return self.error(f"{key} must be {wanted}, but is {shown(value)}{why}")

    def integer(self, key: str, default: Any = ABSENT) -> int:
        """A whole number; booleans are none."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number", value)
        return value

    def number(self, key: str, default: Any = ABSENT) -> float:
        """A finite number."""
        return self._finite(key, self._get(key, default))

    def _finite(self, key: str, value: Any) -> float:
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(key, "a finite number", value)
        return number

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def strings(self, key: str) -> tuple[str, ...] | None:
        """A list of strings, or None where absent."""
        value = self._get(key, None, None)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of strings", value)
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; none where absent."""
        value = self._get(key, [], [])
        if not isinstance(value, list | tuple) or any(isinstance(n, bool) or not isinstance(n, int) for n in value):
            raise self._wrong(key, "a list of whole numbers", value)
        return tuple(value)

    def token_ids(self, key: str) -> tuple[int, ...]:
        """One token id or a list of them; none where absent."""
        value = self._get(key, [], [])
        ids = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= _LARGEST_ID for item in ids):
            raise self._wrong(key, f"a token id or a list of token ids, 0 to {_LARGEST_ID}", value)
        return tuple(ids)

    def dtype_name(self, known: tuple[str, ...], default: str) -> str:
        """`dtype` (transformers 5) or `torch_dtype` (transformers 4), with or without the prefix "torch."."""
        key = "dtype" if self._data.get("dtype") is not None else "torch_dtype"
        value = self._get(key, default, default)
        name = value.removeprefix("torch.") if isinstance(value, str) else value
        if name not in known:
            raise self._wrong(key, f"one of {', '.join(known)}", value)
        return str(name)

    def head_dim(self, hidden_size: int, heads: int) -> int:
        """`head_dim`, or hidden_size / num_attention_heads where absent."""
        if self._data.get("head_dim") is not None:
            return self.integer("head_dim")
        if heads <= 0 or hidden_size % heads:
            raise self.error(
                f"without head_dim, hidden_size must be a multiple of num_attention_heads, "
                f"but {hidden_size} is no multiple of {heads}"
            )
        return hidden_size // heads

    def sliding_window(self) -> int | None:
        """The window where `use_sliding_window` is true; None where it is not, whatever the number beside it says."""
        if not self.boolean("use_sliding_window", False) or self.is_null("sliding_window"):
            return None
        return self.integer("sliding_window", _DEFAULT_WINDOW)

    def rope_theta(self) -> float:
        """The base of the rotary embedding: from `rope_scaling` if there is anything in it, else `rope_parameters`
        (transformers 5), else from the top level (4)."""
        for key in ("rope_scaling", "rope_parameters"):
            value = self._get(key, {}, {})
            if not isinstance(value, Mapping):
                raise self._wrong(key, "an object", value)
            kind = value.get("rope_type", value.get("type", "default"))
            if kind != "default":
                raise self.error(
                    f"{key} asks for rope type {shown(kind)}; only 'default' is run here. "
                    f"Use a checkpoint without it (its context is then the shorter, original one)"
                )
            if value.get("partial_rotary_factor", 1.0) != 1.0:
                raise self._wrong(f"{key}.partial_rotary_factor", "1", value["partial_rotary_factor"])
            if nested := [name for name in value if name in LAYER_TYPES]:
                raise self.error(f"{key} has values for {nested[0]} alone; here all layers turn by the same angles")
            if "rope_theta" in value:
                return self._finite(f"{key}.rope_theta", value["rope_theta"])
            if value:
                break
        return self.number("rope_theta")

    def require_supported(self) -> str:
        """Refuses, by name, what the maths of this package does not cover. Returns the model type."""
        model_type = self._data.get("model_type")
        if model_type not in _MODEL_TYPES:
            raise self.error(
                f"model_type must be {' or '.join(map(repr, _MODEL_TYPES))}, but is {shown(model_type)}; this package "
                f"runs no other model"
            )
        for key, fate in KEYS.items():
            if isinstance(fate, Only) and not fate.allows(value := self._data.get(key, ABSENT)):
                wanted = " or ".join(json.dumps(known) for known in fate.values)
                raise self._wrong(key, f"left out or {wanted}", value, f": {fate.why}")
        return str(model_type)
