"""Text to tokens and back, by the checkpoint's tokenizer.json. The `tokenizers` library is imported on first use."""

import codecs
import json
from pathlib import Path
from typing import Any

from xinfer_lab.qwen2.byte_vocabulary import byte_of_character
from xinfer_lab.qwen2.errors import TokenizerError

__all__ = ["TextStream", "Tokenizer"]


class Tokenizer:
    """A byte-level tokenizer, the kind that every Qwen2 checkpoint has."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        added = backend.get_added_tokens_decoder()
        self._added: dict[int, str] = {id: token.content for id, token in added.items()}
        self._special = {id for id, token in added.items() if token.special}

    @classmethod
    def open(cls, path: str | Path) -> "Tokenizer":
        """Reads tokenizer.json: `path` is that file or the directory that holds it. Raises TokenizerError."""
        path = Path(path)
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise TokenizerError(f"{file}: no such file; without a tokenizer, give token ids instead of text")
        try:
            from tokenizers import Tokenizer as Backend
        except ImportError:
            raise TokenizerError("text needs the package tokenizers: pip install tokenizers") from None
        try:
            backend = Backend.from_file(str(file))
            decoder = json.loads(backend.to_str())["decoder"]
        except Exception as error:  # the library raises bare Exception
            raise TokenizerError(f"{file}: not a tokenizer.json that the tokenizers library reads ({error})") from None
        if not decoder or decoder["type"] != "ByteLevel":
            raise TokenizerError(
                f"{file}: a ByteLevel decoder was wanted, as Qwen2's tokenizer has, but there is "
                f"{decoder['type'] if decoder else 'none'}"
            )
        return cls(backend)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, special tokens in it included, none added."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens, special tokens left out; bytes that are no UTF-8 become U+FFFD."""
        stream = self.stream()
        return "".join([*map(stream.add, tokens), stream.end()])

    def stream(self) -> "TextStream":
        """A decoder for tokens that come one at a time."""
        return TextStream(self)

    def bytes_of(self, token: int) -> bytes:
        """The bytes that a token stands for; none for a special token or an id that the vocabulary does not have
        (models pad their vocabulary)."""
        if token in self._special:
            return b""
        if token in self._added:
            return self._added[token].encode()
        characters = self._backend.id_to_token(token) or ""
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
