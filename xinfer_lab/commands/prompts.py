"""The token ids that a run starts from: given as ids, as text, or a few of the model's own choosing."""

from __future__ import annotations

from pathlib import Path

from xinfer_lab.commands.faults import CommandError
from xinfer_lab.qwen2.errors import TokenizerError
from xinfer_lab.qwen2.tokenizer import Tokenizer

__all__ = ["any_tokens", "check_tokens", "encode_prompt", "open_tokenizer", "parse_tokens"]


def parse_tokens(text: str) -> list[int]:
    """Token ids written as ``1,2,3``. Raises `CommandError`."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not part.isdecimal():
            raise CommandError(f"token ids are numbers with commas between them, such as 1,2,3; {part!r} is none")
    return [int(part) for part in parts]


def open_tokenizer(model: Path) -> Tokenizer:
    """The tokenizer beside the checkpoint ``model``. Raises `CommandError`, which proposes token ids."""
    directory = model if model.is_dir() else model.parent
    try:
        return Tokenizer.open(directory)
    except TokenizerError as error:
        message = str(error).partition("; ")[0]
        raise CommandError(f"{message}; give token ids instead of text: --tokens 1,2,3") from None


def encode_prompt(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The tokens of ``prompt``. Raises `CommandError` if there are none."""
    ids = tokenizer.encode(prompt)
    if not ids:
        raise CommandError("the prompt has no tokens; write at least one character")
    return ids


def any_tokens(vocab_size: int, count: int = 8) -> list[int]:
    """``count`` token ids spread over a vocabulary: something to compute with when nothing was given."""
    return [1 + index * 7919 % (vocab_size - 1) if vocab_size > 1 else 0 for index in range(count)]


def check_tokens(ids: list[int], vocab_size: int) -> list[int]:
    """``ids``, all of which the model has. Raises `CommandError` otherwise, before anything is loaded."""
    for token in ids:
        if token >= vocab_size:
            raise CommandError(f"token ids of this model run from 0 to {vocab_size - 1}, but {token} was given")
    return ids
