"""`--paged` and `--paged-cache`: layers and KV cache in pages, from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

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
        (("--paged-cache", "4KiB", "--page", "1KiB", "--vram", "100KiB"), "100.00 KiB of device memory is not enough"),
        (("--paged", "1MiB", "--page", "1000"), "--page is a multiple of 256 bytes"),
        (("--paged", "100KiB", "--page", "1KiB"), "layers of"),
        (("--paged-cache", "1KiB", "--page", "1KiB"), "holds 1 of the pages of 1.00 KiB, and a cache needs 2"),
        (("--paged", "900KiB", "--page", "1KiB", "--vram", "500KiB"), "choose smaller pools"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(model: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(invoke("parity", model, "--device", "emulated", *arguments))


@pytest.mark.parametrize(
    ("arguments", "name"), [(("--paged", "600KiB", "--policy", "lru"), "paged, 600.00 KiB, lru"), ((), "2 slots")]
)
def test_a_trace_shows_pages_come(model: str, arguments: tuple[str, ...], name: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    done = invoke("trace", model, "--out", out, "--device", "emulated", *arguments, *(SMALL[:2] if arguments else ()))
    assert done.exit_code == 0, done.output
    assert name in done.output.replace("\n", " ")
    names = [event["name"] for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "X"]
    assert any(name.startswith("bring layer") for name in names) == bool(arguments)


def test_a_plan_within_a_budget_counts_a_cache_in_pages(model: str) -> None:
    """What the whole cache would take is room for layers."""
    run = ("generate", model, "--tokens", "1,2,3", "--max-new-tokens", "4", "--context", "2048", "--device", "emulated")
    pages, budget = ("--paged-cache", "8KiB", "--page", "1KiB"), ("--vram", "1400KiB")
    plain, within = invoke(*run), invoke(*run, *pages, *budget)
    assert within.exit_code == 0, within.output
    assert within.stdout == plain.stdout
    assert "2 layers stay, 4 stream" in within.stderr
    assert "is not enough. Enough for this run" in refused(invoke(*run, *budget))
    compared = invoke("parity", model, "--context", "2048", *budget, *pages, "--device", "emulated")
    assert compared.exit_code == 0, compared.output
    assert last_line(compared) == "planned vs resident max abs diff = 0"


def test_a_plan_says_what_a_cache_in_pages_takes_and_what_it_costs() -> None:
    long = ("plan", "7b", "--context", "32768", "--vram", "12GiB", "--gpu", "h200")
    whole, pages = invoke(*long).stdout, invoke(*long, "--paged-cache", "512MiB").stdout
    assert re.search(r"kv cache, pages +512.00 MiB", pages)
    assert re.search(r"kv cache, one layer gathered +64.00 MiB", pages)
    assert "The cache is in pages: 512.00 MiB of 1.75 GiB are in device memory" in pages
    assert "19 of 28 layers stay" in whole and "21 of 28 layers stay" in pages
    # Layers and pages share the link: 7 layers of 466 MB, and about two thirds of the cache, at 55.2 GB/s.
    step = re.search(r"decode, token 32768 +([\d.]+) ms", pages)
    assert step is not None and 80 < float(step[1]) < 90
    assert "decode, token" not in whole
    fits = invoke("plan", "7b", "--vram", "20GiB", "--gpu", "h200", "--paged-cache", "2GiB").stdout
    assert "The cache is in pages, all of which fit (224.00 MiB)" in fits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--page", "1MiB"), "--page and --policy are about pages: give --paged-cache SIZE with them"),
        (("--paged-cache", "1MiB"), "holds 0 of the pages of 2.00 MiB, and a cache needs 2"),
        (("--paged-cache", "1MiB", "--page", "512"), "a page of 512 B holds no token of this cache"),
    ],
)
def test_a_plan_refuses_pages_that_cannot_be(arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(invoke("plan", "7b", *arguments))
