"""The project's own files agree with each other: what is installed, what the README says, what the repository keeps."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.project import ROOT, files, text
from tools.code_map import render

PYPROJECT = tomllib.loads(text("pyproject.toml"))
PROJECT = PYPROJECT["project"]
GROUPS = {"dependencies": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
REQUIREMENTS = [Requirement(line) for group in GROUPS.values() for line in group]
LOWEST_PYTHON = "3.11"

# conda-forge's names where they are not PyPI's.
CONDA_NAMES = {"pytorch": "torch", "python-fastjsonschema": "fastjsonschema", "jupyter_server": "jupyter-server"}
# What `import x` is called in pyproject.toml, where that is not x.
DISTRIBUTIONS = {
    "yaml": "pyyaml",
    "IPython": "ipython",
    "jupyter_server": "jupyter-server",
    "axe_playwright_python": "axe-playwright-python",
}


def pins() -> dict[str, Version]:
    """Constraints by canonical name."""
    lines = [line for line in text("constraints.txt").splitlines() if line and not line.startswith("#")]
    split = [line.partition("==") for line in lines]
    assert all(equals for _, equals, _ in split), "every constraint is name==version"
    pinned = {canonicalize_name(name): Version(version) for name, _, version in split}
    assert len(pinned) == len(lines), "a name is pinned twice"
    return pinned


def conda() -> tuple[list[Requirement], list[str]]:
    """environment.yml's own requirements, under PyPI's names, and its pip section."""
    listed = yaml.safe_load(text("environment.yml"))["dependencies"]
    pip = [line for entry in listed if isinstance(entry, dict) for line in entry["pip"]]
    requirements = [Requirement(entry) for entry in listed if isinstance(entry, str)]
    for requirement in requirements:
        requirement.name = CONDA_NAMES.get(requirement.name, requirement.name)
    return requirements, pip


def targets() -> set[str]:
    """The Makefile's commands."""
    return set(re.findall(r"^\.PHONY: (.+)$", text("Makefile"), flags=re.M)) - {"moved"}


def make_commands(markdown: str) -> list[str]:
    """The targets of the `make` lines in fenced blocks and inline code."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", markdown, flags=re.M | re.S)
    lines = [line for block in fenced for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", markdown)
    return [found[1] for line in lines if (found := re.match(r"(?:bash )?make ([a-z-]+)", line.strip()))]


def imported(module: Path) -> Iterator[str]:
    """The top-level names that ``module`` imports, anywhere in it."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


# --------------------------------------------------------------------------------------------------------- dependencies


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_each_dependency_is_pinned_within_its_range(requirement):
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


@pytest.mark.parametrize(
    "name, broken, works",
    [
        ("typer", "0.15.4", "0.16.0"),  # with click 8.2 it refuses the command line's own defaults
        ("jupyterlab", "4.3.8", "4.4.0"),  # nbgrader 0.9.6's extension is not compatible
        ("jinja2", "3.1.5", "3.1.6"),  # code gets out of its sandbox
    ],
)
def test_versions_that_were_seen_not_to_work_are_not_allowed(name, broken, works):
    allowed = next(one.specifier for one in REQUIREMENTS if one.name == name)
    assert works in allowed and broken not in allowed


def test_pins_resolve_on_every_system():
    for name, version in pins().items():
        assert version.local is None, f"{name}=={version}: a local version is on one index only"
        assert not re.match(r"nvidia-|cuda-|triton$", name), f"{name}: torch fixes it, on the systems that have it"


def test_the_conda_environment_has_the_same_names_and_ranges():
    requirements, pip = conda()
    ours = {requirement.name: requirement.specifier for requirement in requirements}
    assert ours.pop("pip") == ""
    assert ours.pop("python") == PROJECT["requires-python"]
    by_pip = {Requirement(line).name for line in GROUPS["browser"]}
    assert ours == {one.name: one.specifier for one in REQUIREMENTS if one.name not in by_pip}
    assert pip == ["--editable ."]


def test_what_the_package_imports_is_declared():
    lines = [*GROUPS["dependencies"], *GROUPS["cluster"]]
    declared = {Requirement(line).name for line in lines} | {"xinfer_lab"}
    for module in (ROOT / "xinfer_lab").rglob("*.py"):
        wanted = {DISTRIBUTIONS.get(name, name) for name in imported(module)} - sys.stdlib_module_names
        # torch brings triton where there is one, and the modules with kernels are imported nowhere else.
        wanted.discard("triton")
        assert wanted <= declared, f"{module.name} imports {wanted - declared}, absent from pyproject.toml"


def test_what_the_tests_import_is_declared():
    declared = {requirement.name for requirement in REQUIREMENTS} | {"xinfer_lab", "tests", "tools"}
    for module in files(".py"):
        if module.is_relative_to(ROOT / "tests") and not module.is_relative_to(ROOT / "tests" / "bank"):
            wanted = {DISTRIBUTIONS.get(name, name) for name in imported(module)} - sys.stdlib_module_names
            assert wanted <= declared, f"{module.name} imports {wanted - declared}, absent from pyproject.toml"


def test_claims_about_the_python_version_agree():
    assert PROJECT["requires-python"] == f">={LOWEST_PYTHON}"
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert min(named, key=Version) == LOWEST_PYTHON
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{LOWEST_PYTHON.replace('.', '')}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == LOWEST_PYTHON
    candidates = re.search(r"^CANDIDATES := .*", text("Makefile"), flags=re.M)
    assert candidates and set(re.findall(r"python(3\.\d+)", candidates[0])) == named
    workflow = set(re.findall(r'python(?:-version)?: "(3\.\d+)"', text(".github/workflows/ci.yml")))
    assert workflow <= named and LOWEST_PYTHON in workflow
    assert set(re.findall(r"Python (3\.\d+)", text("README.md"))) == {LOWEST_PYTHON}


def test_the_version_is_the_newest_one_in_the_changelog():
    released = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", text("CHANGELOG.md"), flags=re.M)
    assert released == sorted(released, key=Version, reverse=True)
    assert PROJECT["version"] == released[0]


# ------------------------------------------------------------------------------------------------------------- commands


def test_readme_names_the_two_commands_in_a_block():
    assert re.search(r"^```\w*\n(?:.*\n)*?make demo.*\n(?:.*\n)*?make test.*\n", text("README.md"), flags=re.M)


@pytest.mark.parametrize("document", [path.relative_to(ROOT).as_posix() for path in files(".md")])
def test_every_make_command_in_the_documents_exists(document):
    assert set(make_commands(text(document))) <= targets()


def test_every_target_says_what_it_does():
    described = set(re.findall(r"^([a-z-]+):.*## \S", text("Makefile"), flags=re.M))
    assert described == targets()


def test_ci_runs_the_commands_of_the_readme():
    script = text(".ci/run")
    for command in ("make lint", "make test", "make test-slow", "make grader", "make browser"):
        assert re.search(rf"^{command}\b", script, flags=re.M)
        assert command in text("README.md")
    assert script.startswith("#!/usr/bin/env bash\nset -e") or re.search(r"^set -euo pipefail$", script, flags=re.M)
    assert "bash .ci/run" in text("README.md")


def test_each_lab_has_its_bank_among_the_tests_and_among_the_workflows_jobs():
    labs = {path.parent.name.partition("-")[0] for path in (ROOT / "solutions").glob("*/*.ipynb")}
    assert {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "bank").glob("*.py")} == labs
    assert set(re.findall(r"tests/bank/test_(\w+)\.py", text(".github/workflows/ci.yml"))) == labs


def test_the_workflow_runs_the_readmes_lines_without_make():
    lines = re.findall(r"- run: (python -m .+)", text(".github/workflows/ci.yml"))
    assert len(lines) == 4
    for line in lines:
        assert line in text("README.md")


@pytest.mark.skipif(shutil.which("make") is None, reason="this machine has no make")
def test_make_without_a_python_says_what_to_do(tmp_path):
    said = subprocess.run(
        ["make", "lint", f"VENV={tmp_path / 'none'}", "PYTHON=no-such-python"], cwd=ROOT, capture_output=True, text=True
    )
    assert said.returncode != 0
    assert "No Python 3.11 or newer among: no-such-python." in said.stderr
    assert not (tmp_path / "none").exists()


def test_cuda_tests_that_are_left_out_are_counted_aloud(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = cuda\n")
    (tmp_path / "test_three.py").write_text(
        "import pytest\n"
        "@pytest.mark.cuda\ndef test_a(): pass\n"
        "@pytest.mark.cuda\ndef test_b(): pass\n"
        "def test_c(): pass\n"
    )
    for workers in ("0", "2"):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "not cuda",
            "-p",
            "xdist",
            "-n",
            workers,
            "-p",
            "tests.left_out",
        ]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
        assert "CUDA tests not run: 2 (" in said
        assert "1 passed" in said


# ------------------------------------------------------------------------------------------------------------------ lab


def test_jupyterlab_asks_nothing_of_other_hosts():
    config = json.loads(text("config/jupyter/jupyter_lab_config.json"))["LabApp"]
    from jupyterlab.handlers.announcements import NeverCheckForUpdate
    from jupyterlab.labapp import LabApp

    traits = LabApp.class_traits()
    assert set(config) <= set(traits), "JupyterLab knows these settings"
    assert config["news_url"] is None
    assert config["check_for_updates_class"] == f"{NeverCheckForUpdate.__module__}.{NeverCheckForUpdate.__name__}"
    assert config["extension_manager"] == "readonly"


def test_what_jupyterlab_leaves_out_exists_in_it():
    # JupyterLab takes an unknown name without a word, and the feature then stays.
    disabled = json.loads(text("config/jupyter/labconfig/page_config.json"))["disabledExtensions"]
    share = Path(sys.prefix) / "share" / "jupyter"
    found = set()
    for script in (path for folder in ("lab/static", "labextensions") for path in (share / folder).rglob("*.js")):
        code = script.read_text(encoding="utf-8", errors="ignore")
        found.update(name for name in disabled if name in code)
    assert found == set(disabled)


# -------------------------------------------------------------------------------------------------------------- imports


def loaded_by(*modules: str) -> set[str]:
    """The top-level modules, standard library aside, that a fresh interpreter has after importing ``modules``."""
    program = f"import sys; before = set(sys.modules); import {', '.join(modules)}; print(*(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in said.stdout.split()} - sys.stdlib_module_names


def test_importing_the_package_loads_nothing_else():
    assert loaded_by("xinfer_lab") == {"xinfer_lab"}


HEAVY = {"IPython", "ipywidgets", "jupyterlab", "matplotlib", "nbclient", "nbconvert", "nbgrader", "transformers"}
LAYERS = ("device", "qwen2", "residency", "grading", "labs", "cli")


def test_importing_the_layers_loads_neither_pictures_nor_notebooks():
    assert not HEAVY & loaded_by(*(f"xinfer_lab.{layer}" for layer in LAYERS))


# ----------------------------------------------------------------------------------------------------------- repository


def test_the_map_of_the_code_is_up_to_date():
    assert text("docs/map.md") == render(), "run `make map`"


def test_notebooks_are_kept_without_outputs():
    for notebook in files(".ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), notebook


def test_no_file_is_larger_than_a_mebibyte_but_the_trained_model():
    large = [path.relative_to(ROOT).as_posix() for path in files() if path.stat().st_size > 2**20]
    assert large == ["xinfer_lab/models/shakespeare/model.safetensors"]


def test_no_file_names_a_place_on_somebodys_machine():
    folder = r"""(?:^|[\s"'`=(:])(?:/(?:home|Users|root|work|farm|opt|tmp)/\w|[A-Z]:\\+Users\\)"""
    place = re.compile(rf"{folder}|--(?:extra-)?index[-]url|--find[-]links", re.M)
    for path in files():
        try:
            found = place.search(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        assert not found, f"{path}: {found}"
