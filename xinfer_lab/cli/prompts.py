"""The token ids that a run starts from: given as ids, given as text, or made up."""

from __future__ import annotations

from pathlib import Path

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.qwen2.errors import TokenizerError, shown
from xinfer_lab.qwen2.tokenizer import Tokenizer

__all__ = ["any_tokens", "check_tokens", "encode_chat", "encode_prompt", "open_tokenizer", "parse_tokens"]

_MADE = "the tokenizer beside it makes {} of this text"

_DIGITS = 19
"""Of the largest number that 64 bits hold. Python itself refuses to read thousands of them."""


def parse_tokens(text: str) -> list[int]:
    """Token ids written as ``1,2,3``. Raises `CommandError`."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not part.isdecimal() or len(part) > _DIGITS:
            raise CommandError(f"token ids are numbers with commas between them, such as 1,2,3; {shown(part)} is none")
    return [int(part) for part in parts]


def open_tokenizer(model: Path) -> Tokenizer:
    """The tokenizer beside the checkpoint ``model``. Raises `CommandError`, which proposes token ids."""
    directory = model if model.is_dir() else model.parent
    try:
        return Tokenizer.open(directory)
    except TokenizerError as error:
        message = str(error).partition("; ")[0]
        raise CommandError(f"{message}; give token ids instead of text: --tokens 1,2,3") from None


def encode_prompt(tokenizer: Tokenizer, prompt: str, vocab_size: int) -> list[int]:
    """The tokens of ``prompt``. Raises `CommandError` if there are none, or one that the model does not have."""
    ids = tokenizer.encode(prompt)
    if not ids:
        raise CommandError("the prompt has no tokens; write at least one character")
    return check_tokens(ids, vocab_size, _MADE)


def encode_chat(tokenizer: Tokenizer, message: str, vocab_size: int) -> list[int]:
    """The tokens of ``message`` in the model's chat template. Raises `CommandError` as `encode_prompt` does."""
    ids = tokenizer.encode_chat(message)
    if not ids:
        raise CommandError("the chat template gives no tokens for this message")
    return check_tokens(ids, vocab_size, _MADE)


def any_tokens(vocab_size: int, count: int = 8) -> list[int]:
    """``count`` token ids spread over a vocabulary: something to compute with when nothing was given."""
    return [1 + index * 7919 % (vocab_size - 1) if vocab_size > 1 else 0 for index in range(count)]


def check_tokens(ids: list[int], vocab_size: int, source: str = "{} was given") -> list[int]:
    """``ids``, all of which the model has. Raises `CommandError` otherwise, before anything is loaded; ``source`` says
    where the id in its braces came from.
    """
    for token in ids:
        if token >= vocab_size:
            raise CommandError(f"token ids of this model run from 0 to {vocab_size - 1}, but {source.format(token)}")
    return ids
