"""Text to tokens and back."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models
from tokenizers import Tokenizer as Backend
from tokenizers.normalizers import NFC

from xinfer_lab.qwen2.byte_vocabulary import character_of_byte
from xinfer_lab.qwen2.errors import TokenizerError
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.qwen2.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A byte-level tokenizer with three tokens more: a merged pair, a special and a plain added one."""
    directory = write_checkpoint(tmp_path_factory.mktemp("tokenizer") / "model", SyntheticSpec())
    backend = Backend.from_file(str(directory / "tokenizer.json"))
    vocabulary = {character: byte for byte, character in enumerate(character_of_byte)} | {"he": 256}
    backend.model = models.BPE(vocab=vocabulary, merges=[("h", "e")])
    backend.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    backend.add_tokens([AddedToken("<é>", special=False)])
    backend.save(str(directory / "tokenizer.json"))
    return directory


@pytest.fixture(scope="module")
def tokenizer(directory):
    return Tokenizer.open(directory)


def test_text_becomes_bytes_and_merges(tokenizer):
    assert tokenizer.encode("hé he") == [104, 0xC3, 0xA9, 32, 256]


def test_special_tokens_are_read_and_not_shown(tokenizer):
    assert tokenizer.encode("a<|endoftext|>b") == [97, 257, 98]
    assert tokenizer.decode([97, 257, 98]) == "ab"
    assert tokenizer.encode("<é>") == [258]
    assert tokenizer.decode([258]) == "<é>"


@given(st.text(max_size=30))
def test_text_comes_back(tokenizer, text):
    if "<" not in text:
        assert tokenizer.decode(tokenizer.encode(text)) == NFC().normalize_str(text)


@given(st.lists(st.integers(0, 300), max_size=12))
def test_any_tokens_decode_as_the_library_decodes_them(tokenizer, directory, tokens):
    backend = Backend.from_file(str(directory / "tokenizer.json"))
    plain = [token for token in tokens if token != 258]  # the library puts no bytes of added tokens beside others
    assert tokenizer.decode(plain) == backend.decode(plain, skip_special_tokens=True)


@given(st.lists(st.integers(0, 300), max_size=12))
def test_the_stream_adds_up_to_the_whole(tokenizer, tokens):
    stream = tokenizer.stream()
    assert "".join([*map(stream.add, tokens), stream.end()]) == tokenizer.decode(tokens)


def test_a_character_appears_whole_with_its_last_byte(tokenizer):
    stream = tokenizer.stream()
    assert [stream.add(token) for token in "é€😀".encode()] == ["", "é", "", "", "€", "", "", "", "😀"]
    assert stream.end() == ""


def test_a_broken_character_does_not_swallow_the_next(tokenizer):
    stream = tokenizer.stream()
    assert [stream.add(token) for token in [0xE2, 0x82, 0xC3, 0xA9, 0xF0]] == ["", "", "\ufffd", "é", ""]
    assert stream.end() == "\ufffd"


def test_an_id_beyond_the_vocabulary_is_no_text(tokenizer):
    assert tokenizer.decode([5000, 97]) == "a"


def test_the_file_itself_can_be_given(tokenizer, directory):
    assert Tokenizer.open(str(directory / "tokenizer.json")).encode("he") == [256]


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: no such file; .*token ids"):
        Tokenizer.open(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[1", '{"model": 5}'])
def test_a_damaged_tokenizer_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: not (valid JSON|a tokenizer\.json)"):
        Tokenizer.open(tmp_path)


@pytest.mark.parametrize("decoder, found", [(None, "none"), (decoders.WordPiece(), "WordPiece")])
def test_a_tokenizer_that_is_not_byte_level_is_refused(tmp_path, decoder, found):
    backend = Backend(models.BPE(vocab={"a": 0}, merges=[]))
    if decoder is not None:
        backend.decoder = decoder
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match=f"ByteLevel decoder was wanted, .* {found}$"):
        Tokenizer.open(tmp_path)


def test_the_library_is_not_imported_before_it_is_needed():
    code = "import sys, xinfer_lab.qwen2; sys.exit('tokenizers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_library_the_error_says_what_to_install(directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TokenizerError, match="pip install tokenizers"):
        Tokenizer.open(directory)
