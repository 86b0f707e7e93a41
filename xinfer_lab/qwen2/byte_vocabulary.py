"""The smallest byte-level tokenizer: one token a byte, whose id is the byte's value.

Made-up and trained checkpoints of the course use it: it needs no download, and every text has tokens.
"""

from typing import Any

__all__ = ["byte_of_character", "byte_tokenizer", "character_of_byte"]


def _alphabet() -> tuple[str, ...]:
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in plain else chr(next(others)) for byte in range(256))


character_of_byte: tuple[str, ...] = _alphabet()
"""GPT-2's printable stand-in for each byte: itself where it is a visible Latin-1 character, else from U+0100 on in the
order of the bytes. Byte-level vocabularies, Qwen2's too, are written in it."""

byte_of_character: dict[str, int] = {character: byte for byte, character in enumerate(character_of_byte)}
"""The inverse of `character_of_byte`."""


def byte_tokenizer(context: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Contents of tokenizer.json and tokenizer_config.json; `context` is the longest text in tokens."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": dict(byte_of_character),
            "merges": [],
        },
    }
    return tokenizer, {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": False,
    }
