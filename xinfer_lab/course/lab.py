"""A lab as marking needs it: the released notebook, and what the instructor's grade cells ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from xinfer_lab.course.grade_cells import GradeCell, grade_cells
from xinfer_lab.course.notebook import Notebook, read_notebook

__all__ = ["Lab", "find_lab", "read_lab"]


@dataclass(frozen=True)
class Lab:
    """The notebook ``name`` (with its suffix) of the lab ``assignment``: as released, and its graded cells in the
    notebook's order.
    """

    assignment: str
    name: str
    released: Notebook
    graded: tuple[GradeCell, ...]

    @cached_property
    def grade_ids(self) -> frozenset[str]:
        """Every grade id of the released notebook."""
        return frozenset(cell.grade_id for cell in self.released.cells if cell.grade_id)

    @cached_property
    def version(self) -> str:
        """Another one for another release of the lab, or for other checks."""
        return sha256(repr((self.released.cells, self.graded)).encode()).hexdigest()


def read_lab(assignment: str, source: Path, released: Path) -> Lab:
    """The lab whose instructor's notebook is ``source`` and whose students' notebook is ``released``.

    Raises ValueError where the two do not belong together: then the labs have to be released anew.
    """
    graded = grade_cells(read_notebook(source).cells)
    notebook = read_notebook(released)
    there = {cell.grade_id for cell in notebook.cells if cell.mark.get("grade")}
    if there != {cell.grade_id for cell in graded}:
        raise ValueError(
            f"{released} has other graded cells than {source}; release the lab anew, or put those cells back"
        )
    return Lab(assignment, released.name, notebook, graded)


def find_lab(root: Path, assignment: str, notebook: str | None = None) -> Lab:
    """The lab ``assignment`` of the course in ``root``; ``notebook`` names one of several. Raises ValueError, with what
    there is.
    """
    folder = root / "solutions" / assignment
    if not folder.is_dir():
        there = sorted(path.name for path in (root / "solutions").glob("*") if path.is_dir())
        raise ValueError(f"{root} has no lab {assignment!r}; its labs are {', '.join(there) or 'none'}")
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    if notebook is not None:
        names = [name for name in names if name in (notebook, f"{notebook}.ipynb")]
    if len(names) != 1:
        raise ValueError(f"{assignment} has the notebooks {', '.join(names) or 'none'}: name one")
    released = root / "labs" / assignment / names[0]
    if not released.is_file():
        raise ValueError(f"{released} is missing: release the lab first")
    return read_lab(assignment, folder / names[0], released)
