"""What the guides tell people to type exists: commands with these options, modules, files, headings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement

from tests.project import ROOT, STUCK, files, text
from tools.code_map import docstring
from xinfer_lab.cli import app

# Not the changelog: what it names may be gone.
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in files(".md")
    if (path.parent == ROOT or path.is_relative_to(ROOT / "docs")) and path.name != "CHANGELOG.md"
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
PROJECT = tomllib.loads(text("pyproject.toml"))["project"]
PROGRAMS = ("xinfer-lab", "nbgrader", "make", "python")


def commands(page: str) -> Iterator[str]:
    """What a page tells to type: lines of its shell blocks, and commands between the lines of text."""
    source = text(page)
    for kind, block in BLOCK.findall(source):
        if kind in ("sh", "powershell"):
            joined = re.sub(r"\s*\\\n\s*", " ", block)
            yield from (line.split("  #")[0].split(" # ")[0].strip() for line in joined.splitlines())
    for span in CODE.findall(BLOCK.sub("", source)):
        if " " in span:
            yield span
    for line in BLOCK.sub("", source).splitlines():
        if line.startswith("    "):
            yield line.split("  #")[0].strip()


def words(command: str) -> list[str]:
    """A command's words, without the program that only starts another in a container."""
    found = shlex.split(command)
    if found and found[0] in ("docker", "podman") and "run" in found and "xinfer-lab" in found:
        return found[found.index("xinfer-lab") :]
    return found


def typed(program: str) -> list[tuple[str, list[str]]]:
    """All (page, words) whose first word is ``program``."""
    found = []
    for page in PAGES:
        for command in commands(page):
            if any(command.startswith(name) for name in (*PROGRAMS, "docker run", "podman run")):
                parts = words(command)
                if parts and parts[0] == program:
                    found.append((page, parts[1:]))
    return found


def ids(case: tuple[str, list[str]]) -> str:
    return f"{case[0]}: {' '.join(case[1])}"


def test_the_guides_are_read() -> None:
    assert {"docs/instructors.md", "docs/troubleshooting.md", "docs/glossary.md"} <= set(PAGES)
    assert len(typed("xinfer-lab")) > 30 and len(typed("nbgrader")) > 8


@pytest.mark.parametrize("case", typed("xinfer-lab"), ids=ids)
def test_each_command_of_xinfer_lab_is_there_and_takes_these_words(case: tuple[str, list[str]]) -> None:
    group = typer.main.get_command(app)
    name, *arguments = case[1]
    if name.startswith("-"):
        assert name in ("--help", "--version")
        return
    command = group.commands[name]
    if "--help" in arguments or not arguments:
        # In text a command may be named without its arguments.
        return
    # Parsed as if it were typed, but nothing is run: whatever is wrong with it raises.
    command.make_context(name, list(arguments))


@pytest.mark.parametrize("case", typed("nbgrader"), ids=ids)
def test_each_command_of_nbgrader_is_there_with_these_options(case: tuple[str, list[str]]) -> None:
    from nbgrader.apps import NbGraderApp

    step, *arguments = case[1]
    found = NbGraderApp.subcommands[step][0]()
    while arguments and arguments[0] in found.subcommands:
        found = found.subcommands[arguments.pop(0)][0]()
    known = {*found.aliases, *found.flags}
    for option in (word for word in arguments if word.startswith("--")):
        assert option.removeprefix("--").split("=")[0] in known, f"{step} has no {option}; it has {sorted(known)}"


@pytest.mark.parametrize("case", typed("python"), ids=ids)
def test_each_module_that_python_runs_is_there(case: tuple[str, list[str]]) -> None:
    module = case[1][1].split(".") if case[1][0] == "-m" else []
    if module and module[0] in ("xinfer_lab", "tools", "tests"):
        assert any((ROOT / Path(*module)).with_suffix(suffix).exists() for suffix in ("", ".py"))
    elif module:
        assert module[0] in ("pip", "pytest", "venv")


def test_extras_that_are_installed_are_declared() -> None:
    declared = PROJECT["optional-dependencies"]
    for page in PAGES:
        for extras in re.findall(r"-e \"?\.\[([a-z,]+)\]", text(page)):
            assert set(extras.split(",")) <= set(declared), f"{page} installs {extras}"


def anchors(path: Path) -> set[str]:
    """The names by which a page's headings can be linked to, as GitHub makes them."""
    source = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", source, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_somewhere(page: str) -> None:
    here = ROOT / page
    for target in (a or b for a, b in LINK.findall(BLOCK.sub("", text(page)))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (here.parent / name).resolve() if name else here
        assert path.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{page} links to {target}; there are {sorted(anchors(path))}"


@pytest.mark.parametrize("page", PAGES)
def test_each_module_that_a_page_names_is_there(page: str) -> None:
    packages = {path.name for path in (ROOT / "xinfer_lab").iterdir() if path.is_dir()}
    named = re.findall(r"`(?:xinfer_lab/)?((\w+)/[\w/]*\.py)`", BLOCK.sub("", text(page)))
    for path, package in named:
        if package in packages:
            assert (ROOT / "xinfer_lab" / path).exists(), f"{page} names {path}"


# Words that docs/style.md advises against. Code and quotations may have them.
UNWANTED = re.compile(
    r"said aloud|came of it|\bwhose each\b|at the least|\blet pass|c[ao]me to (?:an|no) end|so that nobody"
    r"|\b[Ww]hoever\b|\bhimself\b|\b[Hh]is\b|\b[Hh]im\b|\b[Hh]e\b"
)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/style.md"])
def test_a_page_is_written_as_the_style_page_says(page: str) -> None:
    lines = CODE.sub("", BLOCK.sub("", text(page))).splitlines()
    assert [line for line in lines if UNWANTED.search(line)] == []


@pytest.mark.parametrize("notebook", [path for path in files(".ipynb") if path.is_relative_to(ROOT / "solutions")])
def test_a_notebook_says_you_to_the_reader_and_they_of_anybody_else(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"]]
    assert [line for line in lines if re.search(r"\b(?:he|him|himself|his)\b", line, re.IGNORECASE)] == []


def test_the_first_line_of_every_module_is_whole() -> None:
    """docs/map.md shows it: one sentence on one line, which ends there."""
    first = {path: docstring(path).splitlines()[0] for path in sorted((ROOT / "xinfer_lab").rglob("*.py"))}
    assert [f"{path.relative_to(ROOT)}: {line}" for path, line in first.items() if line[-1] not in ".?"] == []


def rows_of_the_map() -> list[tuple[list[Path], list[str]]]:
    """The table "Where things happen": the files that a row links to, and the names at which it says to start."""
    rows = re.findall(r"^\| (.+) \| (.+\]\(.+) \| (.+) \|$", text("docs/map.md"), flags=re.MULTILINE)
    linked = [
        ([(ROOT / "docs" / name).resolve() for name in re.findall(r"\]\((.+?)\)", row[1])], row[2]) for row in rows
    ]
    return [(paths, re.findall(r"`(?:\w+\.)*(\w+)", start)) for paths, start in linked]


def test_the_map_says_where_to_start_and_that_is_there() -> None:
    assert len(rows_of_the_map()) > 12
    for paths, names in rows_of_the_map():
        sources = "".join(path.read_text(encoding="utf-8") for path in paths)
        for name in names:
            assert re.search(rf"\b{name}\b", sources), f"docs/map.md sends to {paths[0].name} for {name}"


def test_the_machine_is_read_in_an_evening() -> None:
    evening = text("docs/map.md").partition("**One evening")[2].partition("**Another")[0]
    claimed = int(re.search(r"about ([\d,]+) lines", evening)[1].replace(",", ""))
    lines = sum(
        len((ROOT / "docs" / name).read_text("utf-8").splitlines()) for name in re.findall(r"\((.+?\.py)\)", evening)
    )
    assert lines < 1.1 * claimed, f"what docs/map.md tells to read in an evening has {lines} lines by now"


def test_every_decision_is_in_the_list_of_decisions() -> None:
    pages = [path.name for path in files(".md") if path.parent.name == "decisions" and path.name != "README.md"]
    assert sorted(re.findall(r"\]\((.+\.md)\)", text("docs/decisions/README.md"))) == sorted(pages)
    assert all(len(text(f"docs/decisions/{page}").split()) < 400 for page in pages), "a record is a page at most"


def test_a_notebook_service_needs_no_jupyter_of_ours() -> None:
    """README's lines for Colab install the package without its dependencies: labs and checks get by with these."""
    imports = [
        line
        for path in sorted((ROOT / "labs").glob("*/*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
        for line in "".join(cell["source"]).splitlines()
        if line.startswith(("import ", "from "))
    ]
    checks = "from xinfer_lab.grading import examine; examine('lab1.layer_bytes', None); examine('lab3.gate', None)"
    there = "{name.split('.')[0] for name in sys.modules}"
    program = "\n".join([*dict.fromkeys(imports), checks, f"import sys; print(*{there})"])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=STUCK
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"torch", "xinfer_lab"} <= loaded
    ours = {Requirement(line).name.replace("-", "_") for line in PROJECT["dependencies"]}
    service = {"torch", "filelock", "numpy", "safetensors", "psutil", "ipywidgets", "traitlets"}
    service |= {"ipython", "jinja2", "markupsafe", "pygments"}
    installed = re.search(r"pip install -q (?!-)([\w ]+?) &&", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert installed
    assert not (ours - service - set(installed[1].split())) & loaded


def messages(page: str) -> list[str]:
    """What the tables of ``page`` quote from this project: code at the beginning of a row."""
    rows = [line for line in text(page).splitlines() if line.startswith("| `")]
    return [row[3 : row.index("`", 3)] for row in rows]


@pytest.fixture(scope="module")
def said() -> str:
    """All that the project's programs may say: their sources, with texts that were broken into several put together."""
    sources = [path for path in files(".py") if path.is_relative_to(ROOT / "xinfer_lab")] + [ROOT / "Makefile"]
    joined = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return re.sub(r"\"\s*\n\s*f?\"", "", joined).replace("$(VENV)", ".venv")


@pytest.mark.parametrize("message", messages("docs/troubleshooting.md"))
def test_each_message_of_ours_that_is_explained_is_one_that_we_say(message: str, said: str) -> None:
    parts = [part.strip(" ,") for part in message.split("...") if len(part.strip(" ,.()")) > 3]
    assert parts
    for part in parts:
        assert part in said, f"nothing says {part!r}"
