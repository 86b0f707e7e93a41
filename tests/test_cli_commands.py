"""demo, make-checkpoint, generate, trace, simulate: what they show and leave behind."""

import errno
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.command_line import execute, invoke, last_line, refused
from xinfer_lab.cli import demo as demo_module
from xinfer_lab.cli import parity as parity_module
from xinfer_lab.cli.faults import fault_sentence
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.pass_times import pass_times
from xinfer_lab.device.timeline import Timeline, TimelineEvent
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.residency.streaming import StreamingLayers

# ----------------------------------------------------------------------------------------------------------------- demo


def test_the_demo_shows_parity_hazards_memory_and_two_timelines_in_80_columns_and_leaves_nothing_behind(tmp_path):
    said = execute("demo", env={"COLUMNS": "80", "TMPDIR": str(tmp_path)})
    assert said.returncode == 0 and said.stderr == "", said.stderr
    assert all(char.isprintable() or char == "\n" for char in said.stdout), "piped output has no control characters"
    assert list(tmp_path.iterdir()) == []
    lines = said.stdout.splitlines()
    assert lines[-2:] == ["hazards: 0", "streaming vs resident max abs diff = 0"]
    assert max(map(len, lines)) <= 80
    peak = {line.split("  ")[0]: line for line in lines}
    assert "MiB" in peak["resident"] and "MiB" in peak["streaming, 2 slots"]
    assert sum(line.startswith("direct") for line in lines) == 2
    assert re.search(r"^streaming takes .* of the time of serial$", said.stdout, flags=re.M)


def test_microseconds_are_readable_where_only_ascii_can_be_printed(model):
    said = execute("parity", model, "--steps", 1, env={"PYTHONIOENCODING": "ascii"})
    assert said.returncode == 0, said.stderr
    assert said.stdout.isascii() and " us" in said.stdout and "?" not in said.stdout


def test_the_demo_keeps_its_checkpoint_where_it_is_asked_to(tmp_path):
    assert invoke("demo", "--keep", tmp_path / "kept").exit_code == 0
    with Checkpoint.open(tmp_path / "kept") as checkpoint:
        assert checkpoint.config.num_hidden_layers == 6


def test_a_demo_without_parity_fails(monkeypatch):
    wrong = parity_module.Comparison(False, 0.5, "streaming vs resident max abs diff = 0.5")
    monkeypatch.setattr(demo_module, "compare", lambda *_: wrong)
    said = invoke("demo")
    assert (said.exit_code, last_line(said)) == (1, wrong.line)


def test_a_demo_with_a_hazard_fails(monkeypatch):
    def without_a_wait(self, layer):
        slot = self._slots[self._order.ensure(layer) % len(self._slots)]
        return slot.holding(layer)

    monkeypatch.setattr(StreamingLayers, "ensure", without_a_wait)
    said = invoke("demo")
    assert said.exit_code == 1
    assert "hazards: 0" not in said.stdout
    assert "read after write" in said.stdout


# ------------------------------------------------------------------------------------------------------ make-checkpoint


def test_a_checkpoint_is_made_as_asked(tmp_path):
    said = invoke(
        "make-checkpoint", tmp_path / "m", "--layers", 3, "--hidden", 32, "--heads", 4, "--kv-heads", 1,
        "--intermediate", 48, "--vocab", 300, "--dtype", "bfloat16", "--shards", 2, "--tied", "--seed", 4,
    )  # fmt: skip
    assert said.exit_code == 0
    assert "3 layers, hidden 32, bfloat16" in said.stdout and "2 files" in said.stdout
    with Checkpoint.open(tmp_path / "m") as checkpoint:
        config = checkpoint.config
        assert (config.num_key_value_heads, config.vocab_size, config.tie_word_embeddings) == (1, 300, True)
    assert len(list((tmp_path / "m").glob("*.safetensors"))) == 2
    assert invoke("parity", tmp_path / "m", "--steps", 2).exit_code == 0


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        invoke("make-checkpoint", tmp_path / name, "--layers", 2, "--seed", seed)
    weights = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert weights["a"] == weights["b"] != weights["c"]


# ------------------------------------------------------------------------------------------------------------- generate


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("models") / "six", SyntheticSpec(layers=6))


def test_streaming_generates_the_resident_tokens(model):
    resident = invoke("generate", model, "--tokens", "1,2,3", "--max-new-tokens", 9)
    streaming = invoke("generate", model, "--tokens", "1,2,3", "--max-new-tokens", 9, "--stream-layers", 2)
    assert len(resident.stdout.split()) == 9
    assert streaming.stdout == resident.stdout
    assert "9 tokens" in streaming.stderr and "peak device memory" in streaming.stderr


def test_text_in_gives_text_out(model):
    said = invoke("generate", model, "--prompt", "hello", "--max-new-tokens", 4)
    ids = invoke("generate", model, "--tokens", ",".join(map(str, b"hello")), "--max-new-tokens", 4)
    assert said.stdout == bytes(map(int, ids.stdout.split())).decode(errors="replace") + "\n"


def test_a_seed_fixes_what_is_drawn(model):
    def draw(*options):
        return invoke("generate", model, "--tokens", "1", "--temperature", 1, "--top-k", 50, *options).stdout

    assert draw("--seed", 3) == draw("--seed", 3) != draw("--seed", 4)


def test_a_message_is_put_into_the_models_chat_template(model, tmp_path):
    chatty = shutil.copytree(model, tmp_path / "chatty")
    template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}:{% endif %}"
    )
    (chatty / "chat_template.jinja").write_text(template)
    said = invoke("generate", chatty, "--prompt", "hello", "--chat", "--max-new-tokens", 5)
    assert said.exit_code == 0
    assert said.stdout == invoke("generate", model, "--prompt", "<user>hello:", "--max-new-tokens", 5).stdout
    assert said.stdout != invoke("generate", model, "--prompt", "hello", "--max-new-tokens", 5).stdout
    assert "have none" in refused(invoke("generate", model, "--prompt", "hello", "--chat"))
    assert "--prompt TEXT" in refused(invoke("generate", chatty, "--tokens", "1", "--chat"))


def test_a_token_that_the_model_lacks_is_told_with_where_it_came_from(model):
    # Qwen2's tokenizer always knows this one, which a vocabulary of bytes has no room for.
    assert "makes 256 of this text" in refused(invoke("generate", model, "--prompt", "a<|endoftext|>"))
    assert "but 256 was given" in refused(invoke("generate", model, "--tokens", "1,256"))


def test_a_temperature_near_0_is_as_good_as_0(model):
    greedy = invoke("generate", model, "--tokens", "1,2", "--max-new-tokens", 5).stdout
    assert (
        invoke("generate", model, "--tokens", "1,2", "--max-new-tokens", 5, "--temperature", "1e-40").stdout == greedy
    )


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--tokens", "1", "--temperature", 1, "--seed", 2**64], "--seed"),
        (["--tokens", "9" * 5000], "token ids are numbers"),
        (["--tokens", 2**70], "token ids are numbers"),
        (["--prompt", "\udcff"], "no UTF-8"),
        (["--prompt", ""], "the prompt has no tokens"),
        (["--tokens", "1", "--vram", "9" * 400 + "GiB"], "more than any memory"),
    ],
)
def test_numbers_and_text_at_the_edges_are_refused_in_a_sentence(model, arguments, words):
    assert words in refused(invoke("generate", model, *arguments))


def test_each_token_is_flushed_as_it_comes(model, monkeypatch):
    from xinfer_lab.cli import generate as command

    shown = []

    class Output:
        encoding = "utf-8"

        def __init__(self):
            self.text = ""

        def isatty(self):
            return False

        def write(self, text):
            self.text += text

        def flush(self):
            shown.append(self.text)

    monkeypatch.setattr(sys, "stdout", Output())
    command.generate(
        model,
        command.DeviceChoice(kind="emulated"),
        command.Sampling(),
        pool=2,
        max_new_tokens=3,
        prompt=None,
        tokens="5",
    )
    words = [text.split() for text in shown]
    assert [len(ids) for ids in words] == [1, 2, 3, 3]


def test_a_terminal_is_shown_no_control_characters(monkeypatch):
    from xinfer_lab.cli.generate import _Printer

    class Terminal:
        def __init__(self):
            self.text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    class Escapes:
        def stream(self):
            return self

        def add(self, _token):
            return "\x1b[2Ja\n"

        def end(self):
            return ""

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    printer = _Printer(Escapes())
    printer.show(1)
    printer.end()
    assert terminal.text == "\N{REPLACEMENT CHARACTER}[2Ja\n\n"


# ---------------------------------------------------------------------------------------------------------------- trace


def test_a_trace_has_the_passes_on_two_queues(model, tmp_path):
    out = tmp_path / "trace.json"
    said = invoke("trace", model, "--stream-layers", 2, "--steps", 3, "--gpu", "rtx4090", "--out", out)
    assert said.exit_code == 0
    assert str(out) in said.stdout
    events = json.loads(out.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert sum("decoder" in event["name"] or "layer" in event["name"] for event in slices) >= 3 * 6 * 2
    assert not any(event["name"].startswith("load ") for event in slices), "loading is left out"
    assert min(event["ts"] for event in slices) == 0
    assert {event["ph"] for event in events} >= {"X", "s", "f", "C", "M"}
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_an_output_file_appears_complete_or_not_at_all(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(KeyError), output_file(target) as made:
        made.write_text("half")
        raise KeyError
    assert target.read_text() == "old"
    with output_file(target) as made:
        made.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_full_disk_is_told_with_the_file_that_was_to_be_written(tmp_path):
    with pytest.raises(OSError, match="cannot be written") as caught, output_file(tmp_path / "out.json"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert fault_sentence(caught.value) == f"{tmp_path / 'out.json'}: cannot be written (No space left on device)."
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_written_to_and_not_replaced():
    with output_file(Path(os.devnull)) as made:
        assert str(made) == os.devnull


# ------------------------------------------------------------------------------------------------------------- simulate


def test_72b_on_a_24_gib_card_says_where_the_time_goes():
    said = invoke("simulate", "72b", "--gpu", "rtx4090", "--stream-layers", 2, "--tokens", 512, "--steps", 3)
    assert said.exit_code == 0
    for words in (
        "80 layers",
        "24.00 GiB",
        "layer slots",
        "key and value cache",
        "prefill, 512 tokens",
        "decode, mean of 2",
    ):
        assert words in said.stdout
    assert "Decode is bound by the link" in said.stdout
    assert "direct │" in said.stdout or "direct |" in said.stdout


def test_a_small_model_with_a_long_prompt_is_bound_by_computing():
    said = invoke("simulate", "Qwen2.5-0.5B", "--gpu", "rtx4090", "--tokens", 16384, "--steps", 1)
    assert "Prefill is bound by computing" in said.stdout
    assert "decode" not in said.stdout.lower()


def test_a_directory_with_a_config_is_enough_for_a_simulation(model, tmp_path):
    (tmp_path / "config.json").write_text((model / "config.json").read_text())
    said = invoke("simulate", tmp_path, "--stream-layers", 6)
    assert said.exit_code == 0
    assert "Everything is resident" in said.stdout


def test_a_simulation_without_a_fence_is_reported(monkeypatch):
    def without_a_wait(self, layer):
        slot = self._slots[self._order.ensure(layer) % len(self._slots)]
        return slot.holding(layer)

    monkeypatch.setattr(StreamingLayers, "ensure", without_a_wait)
    said = invoke("simulate", "0.5b", "--steps", 1)
    assert said.exit_code == 1
    assert "read after write" in said.stdout


def test_pass_times_count_what_happens_within_the_pass():
    from xinfer_lab.device.records import Copy, Span
    from xinfer_lab.device.stream import CommandStream

    def copy(size):
        return Copy(queue="copy", dst=Span("slot", 0, size), src=Span("heap", 0, size), call=1)

    def event(record, lane, kind, start, end):
        return TimelineEvent(record, lane, kind, "", start, end)

    stream = CommandStream([copy(100), copy(100), copy(0), copy(0), copy(0), copy(0), copy(0), copy(0)])
    timeline = Timeline(
        lanes=("direct", "copy", "host"),
        events=(
            event(0, "copy", "copy", 0.0, 1.0),
            event(2, "direct", "wait", 0.0, 1.0),
            event(3, "direct", "dispatch", 1.0, 3.0),
            event(1, "copy", "copy", 2.0, 4.0),
            event(4, "host", "host_read", 0.0, 3.0),
            event(5, "direct", "wait", 3.0, 4.0),
            event(6, "direct", "dispatch", 4.0, 4.5),
            event(7, "host", "host_read", 3.0, 4.5),
        ),
        flows=(),
        memory=(),
        clock="",
    )
    first, second = pass_times(timeline, stream, [5, 8], link=50.0)
    assert (first.time, first.compute, first.upload, first.stalled, first.bound) == (3.0, 2.0, 2.0, 1.0, 3.0)
    assert (second.time, second.compute, second.upload, second.stalled, second.bound) == (1.5, 0.5, 1.0, 1.0, 1.0)
