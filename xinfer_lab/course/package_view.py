"""A copy of this package without the modules that hold answers: what a student's code is marked with."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path

__all__ = ["PACKAGE", "elsewhere", "fingerprint", "make_view", "other_libraries"]

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package ``xinfer_lab``."""


def make_view(denied: Iterable[str], into: Path, package: Path = PACKAGE) -> Path:
    """Copy ``package`` into the folder ``into`` without the modules ``denied``, neither source nor bytecode; the copy's
    folder. Raises OSError, and leaves nothing, where there is no room for it.
    """
    modules = {tuple(name.split(".")) for name in denied}

    def left_out(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(package.parent).parts
        bytecode = inside[-1] == "__pycache__"
        owner = inside[:-1] if bytecode else inside
        return {name for name in names if (*owner, name.split(".")[0]) in modules}

    copy = into / package.name
    try:
        shutil.copytree(package, copy, ignore=left_out)
    except OSError as error:
        # Half a copy would be in the way of the next attempt, and be told as what went wrong.
        shutil.rmtree(copy, ignore_errors=True)
        failed = error.args[0] if isinstance(error, shutil.Error) else []
        if not failed:
            raise
        _, place, why = failed[0]
        reason = str(why).partition(": '")[0]  # what follows is the paths again
        raise OSError(f"{place} cannot be written: {reason}") from None
    return copy


def elsewhere(denied: Iterable[str], package: Path = PACKAGE) -> tuple[Path, ...]:
    """The folders and files of those modules in ``denied`` that belong to other libraries and are installed here."""
    found: list[Path] = []
    for name in denied:
        top, *below = name.split(".")
        if top == package.name:
            continue
        spec = importlib.util.find_spec(top)
        if spec is None:
            continue
        if not spec.submodule_search_locations:
            found += [Path(spec.origin)] if spec.origin else []
            continue
        for location in spec.submodule_search_locations:
            place = Path(location).joinpath(*below)
            found += [path for path in (place, place.with_suffix(".py")) if path.exists()]
    return tuple(found)


RUNS_ON = (
    "anywidget", "fastjsonschema", "ipykernel", "ipython", "ipywidgets", "jinja2", "matplotlib", "numpy", "psutil",
    "pygments", "rich", "safetensors", "tokenizers", "torch", "typer",
)  # fmt: skip
"""The libraries that a recording process may need, with what these need themselves."""


@cache
def other_libraries() -> tuple[Path, ...]:
    """The folders and files of all libraries installed here that a recording process does not need: among them may be
    some that answer a piece.
    """
    installed: dict[str, Distribution] = {}
    for found in distributions():
        installed.setdefault(_plain_name(found.name), found)
    needed, todo = set[str](), [name for name in RUNS_ON if name in installed]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            required = (_plain_name(re.split(r"[^\w.-]", line)[0]) for line in installed[name].requires or ())
            todo += [other for other in required if other in installed]
    kept = {place for name in needed for place in _places(installed[name])}
    return tuple(sorted({place for name in installed.keys() - needed for place in _places(installed[name])} - kept))


def _places(library: Distribution) -> set[Path]:
    """Where a library's own code is: what lies directly in a folder for libraries."""
    tops = {file.parts[0] for file in library.files or () if len(file.parts) > 1 or file.suffix == ".py"}
    tops -= {"..", "__pycache__"}
    places = (Path(str(library.locate_file(top))) for top in tops if not top.endswith((".dist-info", ".pth")))
    return {place for place in places if place.exists()}


def _plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def fingerprint(package: Path = PACKAGE) -> str:
    """A digest of the package's sources: the same code has the same one on every machine."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(package).as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()
