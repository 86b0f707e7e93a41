"""The archive that students get: the labs, the package, what sets them up; of what a lab asks for nothing to read.

A notebook's checks run in the student's own kernel, so the package has to hold what is right. The rule:

* Left out are solutions, tests with their bank of answers, and all that only an instructor runs.
* *Sealed* is each module that defines, under the lab's own name, something that a lab asks for; each that a piece
  denies to its answers; and all that judges. A sealed module runs as it did before, on every version of Python, and
  cannot be read without undoing the seal.

A seal keeps an answer from being seen by accident, by search or by `inspect`; it is no lock. Marking does not rest on
it: there, none of these modules is within an answer's reach.
"""

from __future__ import annotations

import ast
import base64
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.grading.catalog import pieces_of
from xinfer_lab.grading.rooms import ALWAYS_DENIED, LABS

__all__ = ["asked_names", "bundle", "package_of", "sealed_modules", "write_bundle"]

TOP = "xinfer-lab"
"""The folder that the archive unpacks to."""

FILES = ("LICENSE", "constraints.txt", "environment.yml", "pyproject.toml")
LEFT_OUT = ("course", "__pycache__")
"""Folders of the package that students do not need."""

MACHINE = ("device", "qwen2", "residency", "grading", "labs")
"""Folders of the package in which a name that a lab asks for is its answer. Elsewhere it is the name of a command."""

OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive: the same sources make the same archive."""

README = """\
# xinfer-lab

Labs in which you build a machine that runs a language model larger than GPU memory. No GPU is needed.

Set up once, with Python 3.11 or newer, in this folder:

```sh
python3 -m venv .venv
source .venv/bin/activate        # Windows: .venv\\Scripts\\Activate.ps1
python -m pip install -c constraints.txt -e .
xinfer-lab doctor
```

Then `jupyter lab labs`, and begin with the first notebook. On Linux, pip installs torch with CUDA, which is gigabytes;
without an NVIDIA GPU, install torch's CPU build first, by the line that
<https://pytorch.org/get-started/locally/> gives.

To hand in a lab, save its notebook under its own name and hand in that one file.

Some modules of the package are *sealed*: they hold what a lab asks you to write, and the checks in the notebooks need
them. They work as any other module does. When your work is marked, they are not there, and other cases are asked than
in the notebook.
"""


def asked_names(root: Path, labs: Sequence[str] = ()) -> frozenset[str]:
    """The functions and classes that the labs of the course in ``root`` ask for, ``labs`` or all."""
    names: set[str] = set()
    for path in sorted((root / "solutions").glob("*/*.ipynb")):
        if labs and path.parent.name not in labs:
            continue
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            mark = cell["metadata"].get("nbgrader", {})
            if cell["cell_type"] == "code" and mark.get("solution"):
                names |= _definitions("".join(cell["source"]))
    return frozenset(names)


def _definitions(source: str) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {statement.name for statement in ast.parse(source).body if isinstance(statement, kinds)}


def sealed_modules(root: Path, course: Path | None = None) -> frozenset[str]:
    """The modules to seal, by name, of the package in ``root``: for all labs, since each builds on those before it.

    ``course`` is the course's folder where that is another one.
    """
    denied = set(ALWAYS_DENIED) | {name for lab in LABS for piece in pieces_of(lab) for name in piece.denied_modules}
    asked = asked_names(root) | (asked_names(course) if course else frozenset())
    found = set()
    for path in _modules(root):
        name = _name(path.relative_to(root))
        judges = any(name == other or name.startswith(other + ".") for other in ALWAYS_DENIED)
        alone = name in denied and path.name != "__init__.py"
        machine = path.relative_to(root / "xinfer_lab").parts[0] in MACHINE
        if judges or alone or (machine and _definitions(path.read_text(encoding="utf-8")) & asked):
            found.add(name)
    return frozenset(found)


def _modules(root: Path) -> Iterator[Path]:
    for path in sorted((root / "xinfer_lab").rglob("*.py")):
        if not set(path.relative_to(root / "xinfer_lab").parts) & set(LEFT_OUT):
            yield path


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(root: Path) -> Path:
    """The folder that holds the package and what sets it up, for the course in ``root``: that folder itself, or the
    clone that this command runs from. Raises ValueError where neither does.
    """
    for folder in (root, PACKAGE.parent):
        if (folder / "xinfer_lab").is_dir() and all((folder / name).is_file() for name in FILES):
            return folder
    raise ValueError(
        f"the archive needs {', '.join(FILES)} and the package beside each other; neither {root} nor {PACKAGE.parent} "
        "has them: run this from a clone of the repository"
    )


def bundle(root: Path, labs: Sequence[str], package: Path | None = None) -> dict[str, bytes]:
    """The files of the archive by path within `TOP`: of the course in ``root``, with ``labs`` as they are released.

    ``package`` is what `package_of` says, the course's own folder if left out.
    """
    package = package or root
    made = {name: (package / name).read_bytes() for name in FILES}
    made["README.md"] = README.encode()
    for top, folder in [*((root, Path("labs", lab)) for lab in labs), (package, Path("config"))]:
        for path in sorted((top / folder).rglob("*")):
            if path.is_file() and not {".ipynb_checkpoints", "__pycache__"} & set(path.parts):
                made[path.relative_to(top).as_posix()] = path.read_bytes()
    sealed = sealed_modules(package, root)
    modules = set(_modules(package))
    for path in sorted((package / "xinfer_lab").rglob("*")):
        place = path.relative_to(package)
        if path in modules:
            content = path.read_bytes().replace(b"\r\n", b"\n")
            made[place.as_posix()] = _seal(content) if _name(place) in sealed else content
        elif path.is_file() and path.suffix not in (".py", ".pyc") and not set(place.parts) & set(LEFT_OUT):
            made[place.as_posix()] = path.read_bytes()
    return made


def _seal(source: bytes) -> bytes:
    """A module that is what ``source`` is, and does not show it."""
    text = base64.b85encode(zlib.compress(source, 9)).decode()
    lines = "\n".join(f'    "{text[at : at + 110]}"' for at in range(0, len(text), 110))
    return (
        '"""Sealed: it holds what a lab asks for, and the checks in the notebooks need it. See README.md."""\n\n'
        "import base64\nimport zlib\n\n"
        f"SEALED = (\n{lines}\n)\n"
        'exec(compile(zlib.decompress(base64.b85decode(SEALED)), __file__, "exec", dont_inherit=True))\n'
    ).encode()


def write_bundle(files: dict[str, bytes], into: Path) -> None:
    """Write ``files`` as the zip archive ``into``."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(str(PurePosixPath(TOP, name)), OLDEST)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, files[name])
