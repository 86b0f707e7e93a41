"""Files and numbers that are almost right: each is refused in one sentence, or read as transformers reads it.

A few hundred inputs here; thousands of the same with `pytest -m slow`.
"""

import contextlib
import copy
import functools
import json
import os
import tempfile
import typing
import warnings
from pathlib import Path

import pytest
import torch
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.command_line import invoke
from tests.models import tiny
from tests.test_qwen2_tokenizer_files import SAVED, TEXTS, write
from xinfer_lab.cli.app import COMMANDS
from xinfer_lab.cli.faults import fault_sentence
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config_keys import KEYS
from xinfer_lab.qwen2.errors import ModelFileError
from xinfer_lab.qwen2.header import read_header
from xinfer_lab.qwen2.reference import ReferenceModel
from xinfer_lab.qwen2.tokenizer import Tokenizer

MODELS = {
    "dense": tiny(2), "tied": tiny(2, tied=True), "experts": tiny(2, experts=4), "sharded": tiny(2, shards=3),
}  # fmt: skip
IDS = torch.arange(12)[None] * 7 % 61

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    16,
    24,
    64,
    1e-6,
    0.5,
    1.0,
    1e4,
    1e300,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    10**40,
]
VALUES = st.sampled_from(
    [None, True, False, "", "silu", "default", "yarn", "float16", "\ud800", "0", [], [0], [1, 1], {}, {"a": 1},
     ["full_attention", "sliding_attention"], {"rope_theta": 9.0}, {"rope_type": "default", "rope_theta": 1e4},
     float("inf"), float("nan"), *NUMBERS]
).map(copy.deepcopy)  # fmt: skip


@st.composite
def changed(draw, tree):
    """``tree`` (JSON) with one to three of its values replaced, taken out, or put in somewhere else."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        place, key = None, None
        inner = tree
        while isinstance(inner, dict | list) and inner and (place is None or draw(st.booleans())):
            place = inner
            key = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
            inner = inner[key]
        if place is None:
            return draw(VALUES)
        match draw(st.sampled_from(["value", "value", "number", "out", "twice"])):
            case "value":
                place[key] = draw(VALUES)
            case "number" if isinstance(inner, int) and not isinstance(inner, bool):
                place[key] = inner + draw(st.sampled_from([-1, 1, 4, -4, 2**32, 2**64]))
            case "out":
                del place[key]
            case "twice" if isinstance(place, dict):
                place[draw(st.text(max_size=3))] = inner
            case _:
                place[key] = draw(VALUES)
    return tree


@st.composite
def damaged(draw, content):
    """Bytes with a few of them changed, or cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@contextlib.contextmanager
def refusals():
    """Within it, a refusal is one sentence; it ends the block."""
    try:
        yield
    except (ModelFileError, OSError) as error:
        sentence = fault_sentence(error)
        assert sentence and "\n" not in sentence and len(sentence) < 1100


@functools.cache
def known_logits(directory):
    return logits_of(directory)


def logits_of(directory):
    with Checkpoint.open(directory) as checkpoint:
        return ReferenceModel(checkpoint, capacity=IDS.shape[1]).forward(IDS, positions=IDS.shape[1]).float()


def assert_read_as_transformers_does(directory):
    """Refused in a sentence, or the logits of transformers; or read where transformers says that it cannot."""
    with refusals():
        ours = logits_of(directory)
        try:
            with warnings.catch_warnings(), torch.inference_mode():
                warnings.simplefilter("ignore")
                theirs = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()(IDS).logits
        except Exception:
            return
        assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-3, equal_nan=True)


@contextlib.contextmanager
def copied(source, **contents):
    """A directory like ``source`` in which some files have these contents (bytes, or an object for JSON)."""
    with tempfile.TemporaryDirectory() as folder:
        for file in source.iterdir():
            if file.name not in contents:
                os.link(file, Path(folder) / file.name)
        for name, content in contents.items():
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            (Path(folder) / name).write_bytes(raw)
        yield Path(folder)


CONFIG_KEYS = sorted({*KEYS, "attention_bias", "use_mrope", "auto_map", "vision_config"})


def check_config(models, data):
    source = models.path(MODELS[data.draw(st.sampled_from(["dense", "tied", "experts"]))])
    config = json.loads((source / "config.json").read_text())
    for _ in range(data.draw(st.integers(0, 2))):
        config[data.draw(st.sampled_from(CONFIG_KEYS))] = data.draw(VALUES)
    content = data.draw(st.just(config) | changed(config) | damaged(json.dumps(config).encode()))
    with copied(source, **{"config.json": content}) as directory:
        assert_read_as_transformers_does(directory)


def check_index(models, data):
    source = models.path(MODELS["sharded"])
    name = "model.safetensors.index.json"
    index = json.loads((source / name).read_text())
    content = data.draw(changed(index) | changed(index["weight_map"]).map(lambda made: {"weight_map": made}))
    with copied(source, **{name: content}) as directory, refusals():
        # An index says nothing but where tensors are: what is read by another one is the same.
        assert torch.equal(logits_of(directory), known_logits(source))


def check_header(models, data):
    source = models.path(tiny(1)) / "model.safetensors"
    whole = source.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, rest = json.loads(whole[8 : 8 + length]), whole[8 + length :]

    def packed(made):
        raw = made if isinstance(made, bytes) else json.dumps(made).encode()
        return len(raw).to_bytes(8, "little") + raw + rest

    content = data.draw(
        changed(header).map(packed)
        | damaged(whole[8 : 8 + length]).map(packed)
        | damaged(whole[:400]).map(lambda made: made + whole[400:])
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        file.write_bytes(content)
        with refusals():
            entries = read_header(file)
            try:
                theirs = load_file(file)
            except (SafetensorError, KeyError):
                return
            assert {name: list(entry.shape) for name, entry in entries.items()} == {
                name: list(tensor.shape) for name, tensor in theirs.items()
            }
            for name, entry in entries.items():
                raw = theirs[name].contiguous().flatten().view(torch.uint8).numpy().tobytes()
                assert content[entry.offset : entry.offset + entry.nbytes] == raw


def check_tokenizer(models, data):
    with tempfile.TemporaryDirectory() as folder:
        directory = write(Path(folder), **data.draw(SAVED))
        for name in data.draw(
            st.lists(st.sampled_from(["tokenizer.json", "tokenizer_config.json"]), max_size=2, unique=True)
        ):
            file = directory / name
            if file.exists():
                content = json.loads(file.read_text())
                file.write_text(json.dumps(data.draw(changed(content))))
        text = data.draw(TEXTS)
        with refusals():
            tokenizer = Tokenizer.open(directory)
            ours = tokenizer.encode(text)
            shown = tokenizer.decode(ours)
            try:
                theirs = AutoTokenizer.from_pretrained(directory)
                expected = theirs(text)["input_ids"]
            except KeyboardInterrupt:
                raise
            except BaseException:  # a panic of the library's, too
                return
            assert ours == expected or (expected[:1] == expected[1:2] and ours == expected[1:])
            assert shown == theirs.decode(ours, skip_special_tokens=True)


DIGITS = [
    "0",
    "-1",
    "1",
    "7",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-40",
    "5e-324",
    "",
    " 5 ",
    "0x10",
    "1_000",
    "1,,2",
]
DIGITS += [str(2**40), str(2**63 - 1), str(2**63), str(2**64), str(10**30), "9" * 5000, "\u0663", "\udcff"]
UNITS = ["", "B", "KiB", "GiB", "TB", "TiB"]
BASES = {
    "make-checkpoint": ["OUT", "--hidden", 16, "--heads", 2, "--intermediate", 24, "--layers", 1],
    "parity": ["dense", "--steps", 1],
    "generate": ["dense", "--max-new-tokens", 1],
    "simulate": ["dense", "--steps", 1, "--tokens", 2],
    "plan": ["dense"],
    "trace": ["dense", "--out", "OUT", "--steps", 1],
    "experts": ["experts", "--pool", "2MiB", "--steps", 1],
}
BESIDE = {"--top-k": ["--temperature", 1], "--top-p": ["--temperature", 1], "--experts-per-token": ["--experts", 4]}


def numeric_options():
    """(command, option, whether it is a size) for every option of those commands that takes a number."""
    for command in BASES:
        hints = typing.get_type_hints(COMMANDS[command], include_extras=True)
        for name, hint in hints.items():
            if typing.get_origin(hint) is not typing.Annotated or not isinstance(
                hint.__metadata__[0], typer.models.OptionInfo
            ):
                continue
            option = (hint.__metadata__[0].param_decls or [f"--{name.replace('_', '-')}"])[0]
            size = "SIZE" in (hint.__metadata__[0].metavar or "")
            kinds = {hint.__origin__, *typing.get_args(hint.__origin__)}
            if size or kinds & {int, float} or option in ("--tokens", "--schedule", "--device"):
                yield command, option, size


OPTIONS = list(numeric_options())


def check_number(models, data):
    command, option, size = data.draw(st.sampled_from(OPTIONS))
    text = data.draw(st.sampled_from(DIGITS)) + (data.draw(st.sampled_from(UNITS)) if size else "")
    if option in ("--schedule", "--device"):
        text = data.draw(st.sampled_from([text, f"random({text})", f"cuda:{text}"]))
    with tempfile.TemporaryDirectory() as folder:
        places = {name: models.path(spec) for name, spec in MODELS.items()} | {"OUT": Path(folder) / "out"}
        given = [places.get(argument, argument) for argument in BASES[command]]
        if command == "generate" and option != "--tokens":
            given += ["--tokens", "1,2"]
        said = invoke(command, *given, *BESIDE.get(option, []), f"{option}={text}")
    assert said.exit_code in (0, 2)
    if said.exit_code == 2:
        sentence = said.stderr.splitlines()[-1]
        assert sentence.startswith("xinfer-lab: ") and len(sentence) < 1100
        assert "Traceback" not in said.stderr


CHECKS = {
    check_config: (8, 1500),
    check_index: (80, 2000),
    check_header: (120, 4000),
    check_tokenizer: (60, 2000),
    check_number: (8, 600),
}
"""How many inputs each is tried with, and how many under the marker slow."""


def tried(check, models, count):
    """``check`` with ``count`` inputs."""
    health = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings(max_examples=count, suppress_health_check=health)(given(data=st.data())(check))(models)


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_almost_right_is_refused_or_read_as_transformers_does(models, check):
    tried(check, models, CHECKS[check][0])


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.parametrize("check", CHECKS)
def test_thousands_that_are_almost_right_are_refused_or_read_as_transformers_does(models, check):
    tried(check, models, CHECKS[check][1])


def test_every_command_that_takes_numbers_is_tried():
    assert len(OPTIONS) > 50 and {command for command, _, _ in OPTIONS} == set(BASES)
