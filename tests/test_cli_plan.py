"""`plan` and `bench` on the command line, and budgets that decide what stays."""

import dataclasses
import re

import pytest
import torch

from tests.command_line import invoke, refused
from tests.models import tiny
from xinfer_lab.cli.bench import parse_codecs, parse_counts
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.plan import Shape, make_plan


def test_a_plan_says_what_stays_what_streams_and_what_binds():
    result = invoke("plan", "32b", "--vram", "24GiB", "--gpu", "h200")
    assert result.exit_code == 0
    assert re.search(r"\d+ of 64 layers stay; \d+ stream through 2 slots", result.stdout)
    for words in ("kv cache", "kernel workspace", "final norm, head", "The embedding stays", "peak", "decode", "link"):
        assert words in result.stdout


def test_a_plan_that_fits_streams_nothing():
    result = invoke("plan", "7b", "--gpu", "h200")
    assert "All 28 layers stay, as they are: nothing streams." in result.stdout


def test_a_compressed_plan_keeps_more_layers():
    def stays(*options):
        found = re.search(r"(\d+) of 64 layers stay", invoke("plan", "32b", "--vram", "24GiB", *options).stdout)
        return int(found[1])

    assert stays("--compress", "3bit") > stays("--compress", "4bit") > stays()


def test_a_plan_draws_what_it_says(tmp_path):
    picture = tmp_path / "plan.svg"
    result = invoke("plan", "14b", "--vram", "12GiB", "--picture", picture)
    assert result.exit_code == 0
    svg = picture.read_text(encoding="utf-8")
    for words in ("everything resident", "this plan", "all layers stream", "layers that stay", "slots"):
        assert words in svg


def test_more_tokens_in_the_cache_leave_less_for_layers():
    config = dataclasses.replace(PUBLISHED["14b"])
    plans = [make_plan(config, Shape(context, chunk=512), 12 * 2**30) for context in (1024, 32768)]
    assert plans[0].resident > plans[1].resident


def test_a_budget_that_holds_nothing_is_refused_with_what_is_needed():
    assert "are not enough" in refused(invoke("plan", "72b", "--vram", "4GiB"))


def test_bench_without_a_gpu_offers_to_simulate(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "add --simulate" in refused(invoke("bench", "7b"))


def test_bench_can_be_simulated():
    result = invoke("bench", "32b", "--layers", "8", "--vram", "8GiB", "--prefill", "2048", "--simulate")
    assert result.exit_code == 0
    for words in ("resident", "serial, pinned", "streaming, 2 slots", "planned, 8.00 GiB", "prefill 2048", "decode"):
        assert words in result.stdout


def test_bench_needs_enough_layers_to_stream():
    assert "fewer than 3 layers" in refused(invoke("bench", "7b", "--layers", "2", "--simulate"))


def test_bench_takes_pools_and_codecs():
    shape = ("bench", "7b", "--layers", "6", "--prefill", "", "--simulate")
    result = invoke(*shape, "--vram", "3GiB", "--slots", "4", "--codecs", "3bit")
    assert "streaming, 4 slots" in result.stdout and "compressed 3bit" in result.stdout
    assert "2 slots" not in result.stdout and "4bit" not in result.stdout
    assert "2 slots or more" in refused(invoke("bench", "7b", "--slots", "1", "--simulate"))
    assert "no codec '5bit'" in refused(invoke("bench", "7b", "--codecs", "3bit,5bit", "--simulate"))
    assert parse_codecs("") == ()


@pytest.mark.parametrize(("text", "counts"), [("", ()), ("8192", (8192,)), (" 2, 3 ", (2, 3))])
def test_token_counts_are_read(text, counts):
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["1", "x", "8192,-1"])
def test_other_token_counts_are_refused(text):
    with pytest.raises(CommandError, match="2 tokens or more"):
        parse_counts(text)


def budget(spec, layers, tokens, passes):
    """Bytes with room for all that is always there and ``layers`` layers."""
    config = spec.config()
    shape = Shape(tokens + passes - 1, chunk=tokens)
    return sum(make_plan(config, shape, None).always.values()) + layers * layer_layout(config).nbytes


def test_parity_under_a_budget_runs_the_plan(models):
    spec = tiny(6, dtype="bfloat16")
    result = invoke("parity", models.path(spec), "--vram", budget(spec, 4, 8, 4), "--device", "emulated")
    assert result.exit_code == 0, result.output
    assert "2 layers stay, 4 stream" in result.stdout
    assert result.stdout.strip().endswith("planned vs resident max abs diff = 0")


def test_generate_under_a_budget_gives_the_same_tokens(models):
    spec = tiny(6, dtype="bfloat16")
    command = ["generate", models.path(spec), "--tokens", "1,2,3", "--max-new-tokens", "4", "--device", "emulated"]
    resident = invoke(*command)
    planned = invoke(*command, "--vram", budget(spec, 4, 3, 5))
    assert planned.exit_code == 0, planned.output
    assert planned.stdout == resident.stdout
    assert "2 layers stay, 4 stream" in planned.stderr
    assert "of host memory pinned" in planned.stderr


@pytest.mark.parametrize("tier", ["auto", "registered", "staged"])
def test_generate_from_every_host_memory(models, tier):
    command = ["generate", models.path(tiny(6)), "--tokens", "1,2", "--max-new-tokens", "3", "--device", "emulated"]
    streamed = invoke(*command, "--stream-layers", "2", "--host-memory", tier)
    assert streamed.exit_code == 0, streamed.output
    assert streamed.stdout == invoke(*command).stdout
