"""The trained checkpoint that comes with the package, by name. Knows where it lies and nothing of what is in it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["TRAINED", "trained_model"]

TRAINED: dict[str, Path] = {
    path.name: path for path in sorted(Path(__file__).parent.glob("*")) if (path / "config.json").is_file()
}
"""Directories of checkpoints by name. ``shakespeare``: 6 layers, bytes as tokens, a context of 256 bytes, 3.4 MB."""


def trained_model(name: str) -> Path:
    """The directory of the checkpoint called ``name``. Raises ValueError, with the names there are, for any other."""
    if name not in TRAINED:
        raise ValueError(f"there is no trained model {name!r}; there is {', '.join(TRAINED)}")
    return TRAINED[name]
