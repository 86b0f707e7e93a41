"""Models with experts from the command line: made up, run resident, and with their experts in pages."""

from __future__ import annotations

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


def test_a_model_with_experts_generates(model: str) -> None:
    done = invoke("generate", model, "--tokens", "1,2,3", "--max-new-tokens", "4", "--device", "emulated")
    assert done.exit_code == 0, done.output


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
