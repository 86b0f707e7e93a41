"""Where the project's files are, and which of them are part of it, for the tests that look at the project itself."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUCK = 900.0
"""Seconds after which a process of a test counts as stuck: on a loaded machine everything takes many times longer."""
UNVERSIONED = {".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "__pycache__"}


def text(path: str) -> str:
    """The text of the project's file ``path``."""
    return (ROOT / path).read_text(encoding="utf-8")


def files(suffix: str = "") -> list[Path]:
    """The project's files whose names end in ``suffix``: what git would keep; outside a clone, all but caches."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not UNVERSIONED.intersection(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file() and path.name.endswith(suffix))
