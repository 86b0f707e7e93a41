"""Errors about a model's files that cannot be used."""

import reprlib
from typing import Any

__all__ = ["CheckpointError", "ConfigError", "ModelFileError", "TokenizerError", "shown"]

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown(value: Any) -> str:
    """A value of a file for an error's message: short, however large or deep it is."""
    return _short.repr(value)


class ModelFileError(ValueError):
    """A model's files are missing, damaged or of a kind this package does not run; the message is for the user."""


class ConfigError(ModelFileError):
    """A config.json that is not a Qwen2 config, or asks for something the maths here does not cover."""


class CheckpointError(ModelFileError):
    """Weights that are missing, truncated, misshaped, or do not belong to the config beside them."""


class TokenizerError(ModelFileError):
    """A tokenizer.json that is missing or cannot be used."""
