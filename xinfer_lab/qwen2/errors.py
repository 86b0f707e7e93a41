"""What is said about a model's files that cannot be used."""

__all__ = ["CheckpointError", "ConfigError", "ModelFileError", "TokenizerError"]


class ModelFileError(ValueError):
    """A model's files are missing, damaged or of a kind this package does not run; the message is for the user."""


class ConfigError(ModelFileError):
    """A config.json that is no Qwen2 config, or asks for something the maths here does not cover."""


class CheckpointError(ModelFileError):
    """Weights that are missing, truncated, misshaped, or do not belong to the config beside them."""


class TokenizerError(ModelFileError):
    """A tokenizer.json that is missing or cannot be used."""
