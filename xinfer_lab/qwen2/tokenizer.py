"""Text to tokens and back, by the checkpoint's tokenizer.json. The `tokenizers` library is imported on first use."""

import codecs
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xinfer_lab.qwen2.byte_vocabulary import byte_of_character
from xinfer_lab.qwen2.errors import TokenizerError

if TYPE_CHECKING:
    from xinfer_lab.qwen2.tokenizer_files import Built

__all__ = ["TextStream", "Tokenizer"]


class Tokenizer:
    """A byte-level tokenizer, the kind that every Qwen2 checkpoint has. Its ids are those of transformers 5."""

    def __init__(self, built: "Built") -> None:
        self._backend = built.backend
        self._named = built.special
        self._templates: Mapping[str, str] = built.templates
        added = self._backend.get_added_tokens_decoder()
        self._added: dict[int, str] = {id: token.content for id, token in added.items()}
        self._special = {id for id, token in added.items() if token.special}

    @classmethod
    def open(cls, path: str | Path) -> "Tokenizer":
        """Reads the tokenizer's files in a directory, or one tokenizer.json as it stands. Raises TokenizerError."""
        try:
            importlib.import_module("tokenizers")
            from xinfer_lab.qwen2.tokenizer_files import build
        except ImportError:
            raise TokenizerError("text needs the package tokenizers: pip install tokenizers") from None
        return cls(build(Path(path)))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, special tokens in it included, and with the begin and end tokens that the file's
        post-processor adds; a begin token that the text already has is not added again. Raises TokenizerError for text
        that is no Unicode."""
        encoded = self._encoded(text, True)
        ids: list[int] = encoded.ids
        mask = encoded.special_tokens_mask
        begin = mask.index(0) if 0 in mask else 0
        return ids[begin:] if begin and ids[:begin] == ids[begin : 2 * begin] else ids

    def encode_chat(self, message: str) -> list[int]:
        """Token ids of a conversation that begins with one message of a user, up to where the answer begins, by the
        checkpoint's chat template. Raises TokenizerError where there is none, and as `encode` does."""
        template = self._templates.get("default")
        if template is None:
            held = f"only {', '.join(sorted(self._templates))}" if self._templates else "none"
            raise TokenizerError(f"a chat needs a chat template, but the tokenizer's files have {held}")
        from xinfer_lab.qwen2.chat import render_chat

        text = render_chat(template, [{"role": "user", "content": message}], self._named)
        return list(self._encoded(text, False).ids)

    def _encoded(self, text: str, add: bool) -> Any:
        from xinfer_lab.qwen2.tokenizer_files import panics_told

        try:
            with panics_told("tokenizer.json with this text"):
                return self._backend.encode(text, add_special_tokens=add)
        except (UnicodeError, TypeError):
            raise TokenizerError("the text holds bytes that are no UTF-8, or half of a surrogate pair") from None

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens, special tokens left out; bytes that are no UTF-8 become U+FFFD."""
        stream = self.stream()
        return "".join([*map(stream.add, tokens), stream.end()])

    def stream(self) -> "TextStream":
        """A decoder for tokens that come one at a time."""
        return TextStream(self)

    def bytes_of(self, token: int) -> bytes:
        """The bytes that a token stands for; none for a special token or an id that the vocabulary does not have
        (models pad their vocabulary). Other text than that of a byte-level vocabulary stands for itself."""
        if token in self._special:
            return b""
        if token in self._added:
            return self._added[token].encode()
        characters = self._backend.id_to_token(token) or ""
        if not all(character in byte_of_character for character in characters):
            return characters.encode()  # somebody put it into the vocabulary as it is
        return bytes(byte_of_character[character] for character in characters)


class TextStream:
    """Text that appears as tokens come; a character of several bytes appears with the token that completes it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The text that is complete with this token and was not returned before; often empty."""
        return self._utf8.decode(self._tokenizer.bytes_of(token))

    def end(self) -> str:
        """What remains: U+FFFD if the last character was cut off, else nothing."""
        return self._utf8.decode(b"", final=True)
