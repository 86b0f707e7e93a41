"""`xinfer-lab engine`, and `--engine`: the machine that a student built, outside of the notebook."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.command_line import invoke, last_line, refused
from tests.engines import keep_parts
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint

PARITY = ["--stream-layers", 2, "--steps", 3]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("models") / "six", SyntheticSpec(layers=6))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("course") / "my_engine"
    with pytest.MonkeyPatch.context() as patch:
        keep_parts(folder, patch, without=("slot_of",))
    return folder


def test_show_names_every_part_and_whose_it_is(engine: Path, tmp_path: Path) -> None:
    said = invoke("engine", "show", engine, "--picture", tmp_path / "engine.svg")
    assert said.exit_code == 0, said.stderr
    rows = {line.split()[0]: line for line in said.stdout.splitlines() if line.strip()}
    assert "lent" in rows["slot_of"] and "yours" in rows["copy_engine"]
    assert "21 of 22 parts are yours; the rest is lent by the course." in said.stdout
    drawing = ElementTree.parse(tmp_path / "engine.svg").getroot()
    words = "".join(drawing.itertext())
    assert "slot_of" in words and "streaming_layers" in words and "slot_of (lent)" in words


def test_show_says_what_is_broken_and_ends_with_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_parts(tmp_path, monkeypatch)
    (tmp_path / "ensure.py").write_text("def ensure(:\n")
    said = invoke("engine", "show", tmp_path)
    assert said.exit_code == 1
    assert re.search(r"ensure\.py cannot be imported: SyntaxError", said.stdout)


@pytest.mark.parametrize("command", ["parity", "trace", "generate"])
def test_commands_run_the_students_engine(command: str, model: Path, engine: Path, tmp_path: Path) -> None:
    options = {
        "parity": PARITY,
        "trace": [*PARITY, "--out", tmp_path / "trace.json"],
        "generate": ["--stream-layers", 2, "--tokens", "1,2,3", "--max-new-tokens", 3],
    }[command]
    said = invoke(command, model, *options, "--engine", engine)
    assert said.exit_code == 0, said.stderr
    if command == "parity":
        assert last_line(said) == "engine vs resident max abs diff = 0" and "2 slots, yours" in said.stdout
    elif command == "generate":
        plain = invoke(command, model, *options)
        assert said.stdout == plain.stdout and "6 of the 7 parts that ran are yours" in said.stderr


@pytest.mark.parametrize("command", ["parity", "generate"])
def test_they_run_it_on_threads_too(command: str, model: Path, engine: Path) -> None:
    options = {"parity": PARITY, "generate": ["--tokens", "1,2,3", "--max-new-tokens", 3]}[command]
    said = invoke(command, model, *options, "--engine", engine, "--device", "host")
    assert said.exit_code == 0, said.stderr
    if command == "parity":
        assert last_line(said) == "engine vs resident max abs diff = 0" and "on this machine" in said.stdout
    else:
        assert said.stdout == invoke(command, model, *options, "--device", "emulated").stdout


def test_bench_has_rows_of_the_students_engine(engine: Path) -> None:
    options = ["0.5b", "--layers", 6, "--prefill", "64", "--codecs", "", "--simulate", "--gpu", "rtx4090"]
    said = invoke("bench", *options, "--engine", engine)
    assert said.exit_code == 0, said.stderr
    rows = [line for line in said.stdout.splitlines() if line.strip().startswith("my engine, ")]
    assert len(rows) == 4
    assert last_line(said) == "4 of the 5 parts that ran are yours; lent by the course: slot_of."
    assert "my engine" not in invoke("bench", *options).stdout


def test_a_part_that_cannot_be_used_or_fails_ends_each_command_in_a_sentence(
    model: Path, engine: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "engine"
    shutil.copytree(engine, folder)
    path = folder / "copy_engine.py"
    whole = path.read_text()
    runs = {
        "parity": ["parity", model, *PARITY],
        "generate": ["generate", model, "--tokens", "1,2"],
        "trace": ["trace", model, *PARITY, "--out", tmp_path / "trace.json"],
        "page": ["engine", "page", model, "--out", tmp_path / "page.html"],
        "bench": ["bench", "0.5b", "--layers", 6, "--simulate"],
    }
    for arguments in runs.values():
        path.write_text("import nowhere_at_all\n")
        said = invoke(*arguments, "--engine", folder)
        assert said.exit_code == 2 and said.stderr.splitlines()[-1] == (
            "xinfer-lab: copy_engine.py cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'. "
            "Mend it, or delete the file: then the course lends copy_engine."
        )
        path.write_text(whole.replace("value = self.copied", "value = 1 // 0 + self.copied"))
        said = invoke(*arguments, "--engine", folder)
        assert said.exit_code == 2
        assert re.fullmatch(
            r"xinfer-lab: your part stopped in copy_engine\.py, line \d+: ZeroDivisionError: .*\.",
            said.stderr.splitlines()[-1],
        )


def test_a_broken_engine_fails_parity_and_is_told(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_parts(tmp_path, monkeypatch)
    path = tmp_path / "streaming_layers.py"
    wait = re.compile(r"\n.*self\.device\.copy_queue\.wait\(.*\)")
    text, count = wait.subn("\n                pass", path.read_text())
    assert count == 1
    path.write_text(text)
    said = invoke("parity", model, *PARITY, "--engine", tmp_path)
    assert said.exit_code == 1 and "write after read" in said.stdout


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.loaded += [tag] if tag in ("script", "link", "iframe", "object", "embed") else []
        self.loaded += [
            value or ""
            for name, value in attributes
            if name in ("src", "href") and not (value or "").startswith("data:")
        ]


def test_the_page_is_complete_in_itself_and_says_what_ran(engine: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    said = invoke("engine", "page", "shakespeare", "--engine", engine, "--prompt", "ROMEO.", "--steps", 3, "--out", out)
    assert said.exit_code == 0, said.stderr
    page = out.read_text(encoding="utf-8")
    loads = _Loads()
    loads.feed(page)
    assert loads.loaded == []
    for words in (
        "streaming vs resident max abs diff = 0",
        "ROMEO.",
        "6 of the 7 parts that ran are yours; lent by the course: slot_of.",
        "slot_of (lent)",
    ):
        assert words in page


def test_the_page_shows_a_models_text_as_text(engine: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    invoke("engine", "page", "shakespeare", "--engine", engine, "--prompt", "<b>&", "--steps", 1, "--out", out)
    assert "&lt;b&gt;&amp;" in out.read_text(encoding="utf-8")


def test_what_does_not_go_together_or_is_not_there_is_refused_in_a_sentence(model: Path, engine: Path) -> None:
    assert "goes with none of --paged" in refused(invoke("parity", model, "--engine", engine, "--paged", "1MiB"))
    assert "there is no engine in" in refused(invoke("engine", "show", "nowhere"))
    assert "there is no engine in" in refused(invoke("generate", model, "--tokens", "1", "--engine", "nowhere"))
