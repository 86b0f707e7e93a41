"""Models with experts from the command line: made up, run resident, and with their experts in pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import invoke, refused

SMALL = ("--page", "1KiB", "--device", "emulated")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model")
    done = invoke("make-checkpoint", str(path), "--experts", "6", "--experts-per-token", "2", "--layers", "3")
    assert done.exit_code == 0 and "2 of 6 experts a token" in done.output.replace("\n", " ")
    return str(path)


@pytest.mark.parametrize("policy", ["lru", "clock"])
def test_experts_in_pages_equal_the_resident_ones(model: str, policy: str) -> None:
    done = invoke("experts", model, "--pool", "400KiB", "--policy", policy, "--steps", "5", *SMALL)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[-2:] == [f"{name} vs resident max abs diff = 0" for name in ("on demand", "guessed")]
    assert all(any(line.startswith(name) for line in lines) for name in ("resident", "on demand", "guessed"))


def test_a_model_generates_the_same_with_its_experts_in_pages(model: str) -> None:
    asked = ("generate", model, "--tokens", "1,2,3", "--max-new-tokens", "4", "--device", "emulated")
    plain, paged = invoke(*asked), invoke(*asked, "--paged-experts", "400KiB", "--page", "1KiB", "--policy", "clock")
    assert plain.exit_code == paged.exit_code == 0, plain.output + paged.output
    assert plain.stdout == paged.stdout
    assert plain.stderr.split("device memory ")[1] > paged.stderr.split("device memory ")[1]


def test_a_trace_shows_experts_come(model: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    done = invoke("trace", model, "--out", str(out), "--paged-experts", "400KiB", *SMALL)
    assert done.exit_code == 0, done.output
    assert "paged experts, 400.00 KiB, lru" in done.output.replace("\n", " ")
    names = [event["name"] for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "X"]
    assert any(name.startswith("bring expert") for name in names)


@pytest.mark.parametrize(
    "command",
    [
        ("parity", "{}", "--stream-layers", "2", "--device", "emulated"), ("parity", "{}", "--paged", "9MiB", *SMALL),
        ("trace", "{}", "--device", "emulated", "--out", "{}.json"), ("plan", "{}", "--vram", "1GiB"),
        ("simulate", "{}"), ("generate", "{}", "--tokens", "1", "--vram", "1GiB", "--device", "emulated"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_what_knows_no_experts_says_so_in_one_sentence(model: str, command: tuple[str, ...]) -> None:
    assert "6 experts in a layer" in refused(invoke(*(part.replace("{}", model) for part in command)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pool", "20KiB", "--page", "1KiB"), "2 experts of"),
        (("--pool", "1MiB", "--page", "1000"), "--page is a multiple of 256 bytes"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(model: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(invoke("experts", model, "--device", "emulated", *arguments))


def test_a_dense_model_has_no_experts_to_page(tmp_path) -> None:
    assert invoke("make-checkpoint", str(tmp_path / "dense")).exit_code == 0
    said = refused(invoke("experts", str(tmp_path / "dense"), "--pool", "1MiB", "--device", "emulated"))
    assert "has no experts" in said
    for command in (("generate", "--tokens", "1"), ("trace", "--out", str(tmp_path / "trace.json"))):
        asked = (command[0], str(tmp_path / "dense"), *command[1:], "--paged-experts", "1MiB", "--device", "emulated")
        assert "has no experts to put into pages" in refused(invoke(*asked))


def test_nobody_knows_which_experts_are_used_next(model: str) -> None:
    asked = ("generate", model, "--tokens", "1", "--paged-experts", "400KiB", "--policy", "belady", *SMALL)
    assert "choose lru or clock" in refused(invoke(*asked))
