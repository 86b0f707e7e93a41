"""A copy of this package without the modules that hold answers: what a student's code is marked with."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

__all__ = ["PACKAGE", "elsewhere", "fingerprint", "make_view"]

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package ``xinfer_lab``."""


def make_view(denied: Iterable[str], into: Path, package: Path = PACKAGE) -> Path:
    """Copy ``package`` into the folder ``into`` without the modules ``denied``, neither source nor bytecode; the copy's
    folder.
    """
    modules = {tuple(name.split(".")) for name in denied}

    def left_out(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(package.parent).parts
        bytecode = inside[-1] == "__pycache__"
        owner = inside[:-1] if bytecode else inside
        return {name for name in names if (*owner, name.split(".")[0]) in modules}

    copy = into / package.name
    shutil.copytree(package, copy, ignore=left_out)
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


def fingerprint(package: Path = PACKAGE) -> str:
    """A digest of the package's sources: the same code has the same one on every machine."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(package).as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()
