"""The tokenizer that transformers 5 makes of a checkpoint's files, which is not what tokenizer.json says alone.

For model type qwen2 its class is `Qwen2Tokenizer`, whatever tokenizer_config.json names. It takes the vocabulary,
merges and post-processor of tokenizer.json, and has a normalizer and a pre-tokenizer of its own. For qwen2_moe the
named class decides. Added tokens come from tokenizer_config.json, or, without `added_tokens_decoder` there, from older
files and tokenizer.json. A model answers worse when ids differ from those that it was trained on, and nothing says why.
So each step is taken here as it is there, and a test compares the ids.

Imports the `tokenizers` library; `xinfer_lab.qwen2.tokenizer` imports this module on first use.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from xinfer_lab.qwen2.errors import TokenizerError, shown
from xinfer_lab.qwen2.json_file import read_json

__all__ = ["Built", "build", "panics_told"]

_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2's pre-tokenizer splits text."""

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_END = "<|endoftext|>"
_AS_IT_STANDS = ("LlamaTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
"""Classes, without "Fast", with which transformers takes a byte-level tokenizer.json as it stands."""

_Named = dict[str, str | AddedToken]


@dataclass(frozen=True)
class Built:
    """`backend`: of the tokenizers library, without truncation and padding. `special`: the named special tokens, such
    as eos_token. `templates`: chat templates by name; a single one is called default."""

    backend: Any
    special: dict[str, str]
    templates: dict[str, str]


def build(path: Path) -> Built:
    """Reads the directory of a checkpoint, or a tokenizer.json alone, as it stands. Raises TokenizerError."""
    try:
        with panics_told(str(path)):
            return _build(path)
    except UnicodeError:  # JSON can hold half of a surrogate pair, which is no text
        raise TokenizerError(f"{path}: a token of its tokenizer is no Unicode text") from None


@contextmanager
def panics_told(subject: str) -> Iterator[None]:
    """Within it, where the library gives up on a file that contradicts itself, TokenizerError is raised."""
    try:
        yield
    except BaseException as error:
        # It is written in Rust, whose panics are no Exception here, and of a class without a public name.
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{subject}: the tokenizers library gives up on it ({error})") from None


def _build(path: Path) -> Built:
    directory, file = (path, path / "tokenizer.json") if path.is_dir() else (None, path)
    if not file.is_file():
        raise TokenizerError(f"{file}: no such file; without a tokenizer, give token ids instead of text")
    data = _read(file)
    config = _read(directory / "tokenizer_config.json") if directory is not None else {}
    own_rules = directory is not None and _has_own_rules(directory, config)
    backend = _backend(file, data, own_rules, config)
    named: _Named = {}
    if directory is not None:
        named = _add_tokens(directory, backend, data, config, own_rules)
        backend.encode_special_tokens = bool(config.get("split_special_tokens", False))
    # What was switched on when the file was saved; transformers switches both off unless asked.
    backend.no_truncation()
    backend.no_padding()
    special = {name: str(token) for name, token in named.items()}
    return Built(backend, special, _templates(directory, config) if directory is not None else {})


def _has_own_rules(directory: Path, config: dict[str, Any]) -> bool:
    """Whether the class is `Qwen2Tokenizer`."""
    file = directory / "tokenizer_config.json"
    if config.get("auto_map"):
        raise TokenizerError(f"{file}: it asks for code of its own (auto_map), which is not run here")
    if config.get("fast_tokenizer_files", ["tokenizer.json"]) != ["tokenizer.json"]:
        raise TokenizerError(f"{file}: of fast_tokenizer_files only tokenizer.json is read here")
    model = _read(directory / "config.json")
    kind = config.get("tokenizer_class") or model.get("tokenizer_class") or "Qwen2Tokenizer"
    name = str(kind).removesuffix("Fast")
    if model.get("model_type") == "qwen2" or name == "Qwen2Tokenizer":
        return bool(model)
    if name not in _AS_IT_STANDS:
        raise TokenizerError(f"{file}: tokenizer_class is {shown(kind)}, which is not run here; give token ids instead")
    return False


def _read(file: Path) -> dict[str, Any]:
    """A JSON object; an empty one for a file that is not there."""
    data = read_json(file, TokenizerError) if file.is_file() else {}
    if not isinstance(data, dict):
        raise TokenizerError(f"{file}: a JSON object was wanted, but it holds a {type(data).__name__}")
    return data


def _backend(file: Path, data: dict[str, Any], own_rules: bool, config: dict[str, Any]) -> Any:
    """The tokenizer as the file has it; with `own_rules` without added tokens, which are another step."""
    model = data.get("model")
    if own_rules:
        if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
            raise TokenizerError(f"{file}: not a tokenizer.json with a model of type BPE, as Qwen2's tokenizer has")
        # The library reads a post-processor in a whole tokenizer alone.
        data = {**data, "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
    try:
        backend = Tokenizer.from_str(json.dumps(data))
        if own_rules and isinstance(model, dict):
            merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model.get("merges") or []]
            backend.model = models.BPE(
                vocab=model["vocab"], merges=merges, continuing_subword_prefix="", end_of_word_suffix=""
            )
            backend.normalizer = normalizers.NFC()
            split = pre_tokenizers.Split(Regex(_PATTERN), behavior="isolated", invert=False)
            space = config.get("add_prefix_space") or False
            level = pre_tokenizers.ByteLevel(add_prefix_space=space, use_regex=False)
            backend.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    except Exception as error:  # the library raises bare Exception
        raise TokenizerError(f"{file}: not a tokenizer.json that the tokenizers library reads ({error})") from None
    decoder = data.get("decoder") or {"type": "none"}
    found = decoder.get("type") if isinstance(decoder, dict) else shown(decoder)
    if found != "ByteLevel":
        raise TokenizerError(f"{file}: a ByteLevel decoder was wanted, as Qwen2's tokenizer has, but there is {found}")
    return backend


def _add_tokens(directory: Path, backend: Any, data: dict[str, Any], config: dict[str, Any], own_rules: bool) -> _Named:
    """Gives the backend the added and special tokens that the files name, in transformers' order, which decides their
    ids. Returns the named ones."""
    given = dict(config)
    added = _added_tokens(directory, data, given)
    if "additional_special_tokens" in given and not given.get("extra_special_tokens"):
        given["extra_special_tokens"] = given.pop("additional_special_tokens")
    file = directory / "tokenizer_config.json"
    extra = given.get("extra_special_tokens") or []
    of_model = {key: value for key, value in given.items() if key.endswith("_token") and key not in _NAMED}
    if isinstance(extra, dict):
        of_model, extra = of_model | extra, []
    if not isinstance(extra, list):
        raise TokenizerError(f"{file}: extra_special_tokens must be a list, but is {shown(extra)}")
    if own_rules:
        given = {"unk_token": _END, "eos_token": _END, "pad_token": _END} | given
    elif "pad_token" not in given and backend.padding:
        given["pad_token"] = backend.padding["pad_token"]
    by_content = {token.content: token for token in added.values()}
    named: _Named = {}
    for key in _NAMED:
        if given.get(key) is not None:
            token = _token(file, key, given[key])
            named[key] = by_content.get(str(token), token)
    # A key that ends in _token may also be a switch, such as add_bos_token.
    named |= {k: _token(file, k, value) for k, value in of_model.items() if isinstance(value, str | dict)}
    extra = [_token(file, "extra_special_tokens", value) for value in extra]

    known = {token.content for token in backend.get_added_tokens_decoder().values()} | set(by_content)
    wanted: list[str | AddedToken] = [added[index] for index in sorted(added)]
    wanted += [token for token in [*named.values(), *extra] if str(token) not in known]
    names = {str(token) for token in named.values()}
    backend.add_tokens([_special(token, str(token) in names) for token in dict.fromkeys(wanted)])
    if own_rules:
        every = dict.fromkeys(map(str, [*named.values(), *extra]))
        backend.add_tokens([AddedToken(content, special=True) for content in every])
    return named


def _special(token: str | AddedToken, named: bool) -> AddedToken:
    if isinstance(token, str):
        return AddedToken(token, special=True)
    if named:
        token.special = True
    return token


def _added_tokens(directory: Path, data: dict[str, Any], given: dict[str, Any]) -> dict[int, AddedToken]:
    """Added tokens by id. What the older special_tokens_map.json says is put into `given`."""
    file = directory / "tokenizer_config.json"
    if "added_tokens_decoder" in given:
        found = given.pop("added_tokens_decoder")
        if not isinstance(found, dict) or not all(key.isdecimal() for key in found):
            raise TokenizerError(f"{file}: added_tokens_decoder must map ids to tokens, but is {shown(found)}")
        return {int(key): _from_object(file, "added_tokens_decoder", value) for key, value in found.items()}
    older = directory / "special_tokens_map.json"
    for key, value in _read(older).items():
        if isinstance(value, dict) and key != "extra_special_tokens":
            value = _from_object(older, key, {**value, "special": True})
        given[key] = value
    added: dict[int, AddedToken] = {}
    special = {str(_token(file, key, given[key])) for key in _NAMED if given.get(key)}
    older, current = directory / "added_tokens.json", directory / "tokenizer.json"
    for content, index in _read(older).items():
        if not isinstance(index, int):
            raise TokenizerError(f"{older}: the id of {shown(content)} must be a number, but is {shown(index)}")
        added[index] = AddedToken(content, normalized=content not in special, special=content in special)
    stored = data.get("added_tokens") or []
    if not isinstance(stored, list):
        raise TokenizerError(f"{current}: added_tokens must be a list, but is {shown(stored)}")
    for value in stored:
        if not isinstance(value, dict) or not isinstance(value.get("id"), int):
            raise TokenizerError(f"{current}: an added token must have an id, but is {shown(value)}")
        plain = {key: item for key, item in value.items() if key != "id"}
        added[value["id"]] = _from_object(current, "added_tokens", plain)
    return added


def _token(file: Path, key: str, value: Any) -> str | AddedToken:
    return value if isinstance(value, str | AddedToken) else _from_object(file, key, value)


def _from_object(file: Path, key: str, value: Any) -> AddedToken:
    try:
        if not isinstance(value["content"], str):
            raise TypeError
        return AddedToken(**{name: item for name, item in value.items() if name != "__type"})
    except (TypeError, KeyError, AttributeError, UnicodeError):
        wanted = "a token or an object with its content"
        raise TokenizerError(f"{file}: {key} must be {wanted}, but is {shown(value)}") from None


def _templates(directory: Path, config: dict[str, Any]) -> dict[str, str]:
    """Files come before what tokenizer_config.json says."""
    files = {file.stem: file for file in sorted((directory / "additional_chat_templates").glob("*.jinja"))}
    if (directory / "chat_template.jinja").is_file():
        files["default"] = directory / "chat_template.jinja"
    if files:
        return {name: file.read_text(encoding="utf-8", errors="replace") for name, file in files.items()}
    stated = config.get("chat_template")
    if stated is None:
        return {}
    named = stated if isinstance(stated, list) else [{"name": "default", "template": stated}]
    found: dict[str, str] = {}
    for item in named:
        pair = (item.get("name"), item.get("template")) if isinstance(item, dict) else (None, None)
        if not all(isinstance(text, str) for text in pair):
            file = directory / "tokenizer_config.json"
            raise TokenizerError(
                f"{file}: chat_template must be a text or a list of named ones, but is {shown(stated)}"
            )
        found[str(pair[0])] = str(pair[1])
    return found
