"""`--paged` and `--paged-cache`: layers and KV cache in pages, from the command line."""

from __future__ import annotations

import pytest

from tests.command_line import invoke, last_line, refused

SMALL = ("--page", "1KiB", "--device", "emulated")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model")
    assert invoke("make-checkpoint", str(path)).exit_code == 0
    return str(path)


@pytest.mark.parametrize("policy", ["clock", "lru", "belady"])
def test_layers_in_pages_equal_the_resident_ones(model: str, policy: str) -> None:
    done = invoke("parity", model, "--paged", "600KiB", "--policy", policy, *SMALL)
    assert done.exit_code == 0, done.output
    assert last_line(done) == "paged vs resident max abs diff = 0"
    assert f"paged, 600.00 KiB, {policy}" in done.output.replace("\n", " ")


def test_a_cache_in_pages_equals_one_in_one_piece(model: str) -> None:
    for others in (("--paged", "600KiB"), ("--stream-layers", "2"), ()):
        done = invoke("parity", model, "--paged-cache", "4KiB", "--policy", "lru", *others, *SMALL)
        assert done.exit_code == 0, done.output
        assert "max abs diff = 0" in last_line(done)


def test_generating_gives_the_same_tokens(model: str) -> None:
    plain = invoke("generate", model, "--tokens", "1,2,3", "--max-new-tokens", "6", "--device", "emulated")
    pages = invoke(
        "generate", model, "--tokens", "1,2,3", "--max-new-tokens", "6", "--paged", "1MiB", "--paged-cache", "8KiB",
        *SMALL,
    )  # fmt: skip
    assert pages.exit_code == 0, pages.output
    assert pages.stdout == plain.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "lru"), "--page and --policy are about pages: give --paged SIZE or --paged-cache SIZE"),
        (("--paged", "1MiB", "--stream-layers", "2"), "--paged and --stream-layers exclude each other"),
        (("--paged-cache", "1MiB", "--vram", "9MiB"), "a plan for --vram counts the whole cache"),
        (("--paged", "1MiB", "--page", "1000"), "--page is a multiple of 256 bytes"),
        (("--paged", "100KiB", "--page", "1KiB"), "layers of"),
        (("--paged-cache", "1KiB", "--page", "1KiB"), "has 1 frames of 1.00 KiB, and a cache needs 2"),
        (("--paged", "900KiB", "--page", "1KiB", "--vram", "500KiB"), "choose a smaller --paged or --paged-cache"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(model: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(invoke("parity", model, "--device", "emulated", *arguments))
