"""The release: labs/ is made from solutions/ by nbgrader, and stays in step with it.

python -m xinfer_lab.course.release            make labs/ anew
python -m xinfer_lab.course.release --check    say where labs/ differs from solutions/ or gives something away;
status 1 then
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xinfer_lab.course.nbgrader_process import NbgraderError, run_nbgrader

__all__ = ["drift", "generate", "leaks", "main", "swap"]

Cell = dict[str, Any]
Notebook = dict[str, Any]

_MARKS = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN TESTS", "END HIDDEN TESTS", "BEGIN MARK SCHEME")
_HIDDEN = re.compile(r"^#+ *BEGIN (SOLUTION|HIDDEN TESTS)[^\n]*\n(.*?)^ *#+ *END \1", re.MULTILINE | re.DOTALL)
_GAP = re.compile(r"^ *### GAP: ?(.*)$", re.MULTILINE)
_SHORTEST = 12
"""Characters. A shorter line of an answer (``return slots``) may well stand in a text too."""


def generate(into: Path, *, root: Path, lab: str = "*", gradebook: bool = False) -> None:
    """Make the student's labs from ``root``/solutions in the folder ``into``, all or the one named ``lab``, replacing
    what is there of the same name. With ``gradebook`` the course's gradebook learns of them.

    A lab is made beside and put in place when it is whole: where it cannot be made, what was there stays as it is.
    Raises RuntimeError with the reason. Blocks for a few seconds.
    """
    into = into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    _put_back(into)
    # Beside, so that moving is renaming.
    with tempfile.TemporaryDirectory(prefix=f".{into.name}-", dir=into.parent, ignore_cleanup_errors=True) as beside:
        made = Path(beside, "new")
        folders = (f"--CourseDirectory.root={root}", f"--CourseDirectory.release_directory={made}")
        apart = () if gradebook else ("--no-db",)
        try:
            run_nbgrader(root, "generate_assignment", lab, *apart, "--force", *folders)
        except NbgraderError as error:
            raise RuntimeError(_reason(lab, error)) from None
        for path in sorted(made.iterdir()):
            swap(path, into / path.name, Path(beside, f"old-{path.name}"))


def swap(new: Path, place: Path, aside: Path) -> None:
    """Put the folder ``new`` in the place of ``place``, which goes to ``aside``; if that fails it comes back."""
    there = place.exists()
    if there:
        place.rename(aside)
    try:
        new.rename(place)
    except BaseException:
        if there:
            aside.rename(place)
        raise


def _put_back(into: Path) -> None:
    """Bring back what a release had set aside that was killed before the new lab was in place."""
    for aside in into.parent.glob(f".{into.name}-*/old-*"):
        place = into / aside.name.removeprefix("old-")
        if not place.exists():
            aside.rename(place)


def _reason(lab: str, error: NbgraderError) -> str:
    """Why nbgrader made no release, in a sentence."""
    log = error.log
    if "associated with it" in log or "associated with this" in log:
        return (
            f"{lab} has marks, and its graded cells are not those that were marked: a release would make the marks "
            f"wrong. Either put the cells back (same grade ids), or keep the marks in a file (xinfer-lab export {lab} "
            f"--out old-marks.csv), take the lab out of the gradebook (nbgrader db assignment remove {lab} --force), "
            "release it and mark it again; points and comments that people gave are lost. Nothing was changed"
        )
    causes = [line for line in log.splitlines() if re.match(r"^[\w.]*(Error|Exception)\b.*:", line)]
    said = causes or [line for line in log.splitlines() if " ERROR" in line] or log.splitlines() or ["no reason given"]
    return f"nbgrader could not release {lab}: {said[-1].strip()[:300]}. Nothing was changed"


def drift(*, root: Path) -> list[str]:
    """Where ``root``/labs differs from what solutions/ would give, a sentence each; empty if it does not."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "labs"
        generate(fresh, root=root)
        wanted, there = _files(fresh), _files(root / "labs")
        found = [f"labs/{name} is missing" for name in sorted(wanted.keys() - there.keys())]
        found += [f"labs/{name} is made by nothing in solutions/" for name in sorted(there.keys() - wanted.keys())]
        found += [
            f"labs/{name} differs from what solutions/ gives"
            for name in sorted(wanted.keys() & there.keys())
            if wanted[name] != there[name]
        ]
    return found


def _files(folder: Path) -> dict[str, bytes]:
    """Content by path. Line ends are made equal, since git may have changed them on Windows."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().replace(b"\r\n", b"\n")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".ipynb_checkpoints" not in path.parts
    }


def leaks(*, root: Path) -> list[str]:
    """What the notebooks in ``root``/labs give away or carry that no student's notebook may, a sentence each."""
    found = []
    for source in sorted((root / "solutions").glob("*/*.ipynb")):
        released = root / "labs" / source.parent.name / source.name
        name = f"labs/{source.parent.name}/{source.name}"
        if not released.is_file():
            found.append(f"{name} is missing")
            continue
        notebook = _read(released)
        found += [f"{name}: {fault}" for fault in (*_given_away(_read(source), notebook), *_faults(notebook))]
    return found


def _read(path: Path) -> Notebook:
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def _text(cell: Cell) -> str:
    return "".join(cell["source"])


def _secrets(source: Notebook) -> set[str]:
    """Lines of answers and hidden tests that stand nowhere else in the instructor's notebook, nor in a gap."""
    inside: set[str] = set()
    outside: set[str] = set()
    for cell in source["cells"]:
        text = re.sub(r"^ +(?=#+ *(BEGIN|END) )", "", _text(cell), flags=re.MULTILINE)
        for match in _HIDDEN.finditer(text):
            inside |= {line.strip() for line in match.group(2).splitlines()}
            outside |= {line.strip() for line in _GAP.findall(match.group(2))}
        outside |= {line.strip() for line in _HIDDEN.sub("", text).splitlines()}
    return {line for line in inside - outside if len(line) >= _SHORTEST}


def _given_away(source: Notebook, notebook: Notebook) -> Iterator[str]:
    secrets = _secrets(source)
    if not secrets:
        yield "no answer and no hidden test was found in its source, so nothing can be looked for"
    for cell in notebook["cells"]:
        text = _text(cell)
        for mark in _MARKS:
            if mark in text:
                yield f"cell {cell['id']} has the mark {mark}"
        for line in sorted(secrets & {line.strip() for line in text.splitlines()}):
            yield f"cell {cell['id']} has a line of an answer or of a hidden test: {line}"


def _faults(notebook: Notebook) -> Iterator[str]:
    cells = notebook["cells"]
    grade_ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell["metadata"]]
    for kind, names in (("cell id", [cell.get("id") for cell in cells]), ("grade id", grade_ids)):
        for name, count in Counter(names).items():
            if count > 1 or name is None:
                yield f"the {kind} {name} is there {count} times"
    for cell in cells:
        if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"] is not None):
            yield f"cell {cell['id']} carries outputs"
        if "attachments" in cell:
            yield f"cell {cell['id']} has attachments; put pictures into files beside the notebook"
        mark = cell["metadata"].get("nbgrader")
        if mark and mark["grade"] and not mark["solution"] and not mark["locked"]:
            yield f"the check {mark['grade_id']} can be edited: lock it"


def main(arguments: list[str] | None = None) -> int:
    """Make the labs, or check them; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xinfer_lab.course.release", description="Make labs/ from solutions/."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; say what differs or leaks, status 1 then")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the course's folder (default: here)")
    asked = parser.parse_args(arguments)
    root = asked.root.resolve()
    if not (root / "solutions").is_dir() or not (root / "nbgrader_config.py").is_file():
        print(f"{root} has no solutions/ and nbgrader_config.py; run this in the course's folder", file=sys.stderr)
        return 2
    if not asked.check:
        generate(root / "labs", root=root)
    found = [*(drift(root=root) if asked.check else ()), *leaks(root=root)]
    for fault in found:
        print(fault)
    if not found:
        in_step = "labs/ is in step with solutions/ and gives nothing away"
        print(in_step if asked.check else "labs/ is made from solutions/")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
