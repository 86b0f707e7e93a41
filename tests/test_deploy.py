"""What lies in deploy/, and what `make sandbox` does while something else installs packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.project import ROOT, text

APT = """#!/bin/sh
echo "$@" >> "$LOG"
case "$*" in *check*|*update*)
  if [ "$(grep -c update "$LOG")" -lt 3 ]; then
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2; exit 100
  fi;;
esac
"""


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("make") is None, reason="needs make")
def test_make_sandbox_waits_for_whoever_holds_the_packages(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "env", "grep", "make", "echo", "uname", "cat"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    for name, script in {"apt-get": APT, "id": "#!/bin/sh\necho 0\n", "sleep": "#!/bin/sh\n"}.items():
        (tools / name).write_text(script, encoding="utf-8")
        (tools / name).chmod(0o755)
    env = {"PATH": str(tools), "LOG": str(tmp_path / "log"), "HOME": os.environ.get("HOME", "/")}
    command = [str(tools / "make"), "-f", str(ROOT / "Makefile"), "sandbox", "SHELL=" + str(tools / "sh")]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [call for call in calls if "check" not in call] == [*["update -qq"] * 3, "install -y -qq bubblewrap"]
    assert done.stderr.count("waiting for it") == 1


def kept_out(path: str) -> bool:
    """Whether .dockerignore keeps ``path`` out of an image."""
    out = False
    for line in text(".dockerignore").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        if fnmatch(parts[0], pattern) or (line.startswith("**/") and any(fnmatch(part, pattern) for part in parts)):
            out = not line.startswith("!")
    return out


@pytest.mark.parametrize(
    "path",
    [".git/config", ".venv/bin/python", "submitted/a/lab/lab.ipynb", "gradebook.db", "autograded/a", "feedback/a",
     "disputes/a", "release/x.zip", ".xinfer-lab/lab.json", "xinfer_lab/__pycache__/x.pyc", "tests/bank/x.py"],
)  # fmt: skip
def test_no_work_of_students_goes_into_an_image(path: str) -> None:
    assert kept_out(path)


def test_what_the_containerfile_copies_is_there_and_let_in() -> None:
    lines = re.findall(r"^COPY (.+) \S+$", text("deploy/Containerfile"), flags=re.M)
    copied = [name for line in lines for name in line.split()]
    assert "xinfer_lab" in copied and "." not in copied and "solutions" not in copied
    for name in copied:
        assert (ROOT / name).exists() and not kept_out(name)


def test_the_workflow_for_students_runs_a_command_that_exists() -> None:
    workflow = yaml.safe_load(text("deploy/students/checks.yml"))
    runs = [step.get("run", "") for step in workflow["jobs"]["checks"]["steps"]]
    assert any("xinfer-lab check labs/*/*.ipynb --json checks.json" in run for run in runs)
