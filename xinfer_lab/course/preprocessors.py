"""nbgrader's autograde step by way of `Marker`, so that its button and its command take the verified path.

nbgrader reads a submission (`SubmissionExporter`), puts answers into the released notebook (`TransplantAnswers`, before
its own checks), and stores marks from the outputs of grade cells, which `VerifiedMarks` writes in the place of running
the notebook.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, v4
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from xinfer_lab.course.handed_in import collect
from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab, read_lab
from xinfer_lab.course.marking import Marker
from xinfer_lab.course.marks import marks_to_data
from xinfer_lab.course.notebook import Notebook, UnreadableNotebook, parse_notebook, read_notebook
from xinfer_lab.course.outputs import NOTES, cell_outputs, notes_text, unmarked
from xinfer_lab.course.sandbox import CHOICES, open_sandbox
from xinfer_lab.course.transplant import Placed, Transplant, transplant

__all__ = ["KEY", "MARKED", "LabStep", "SubmissionExporter", "TransplantAnswers", "VerifiedMarks"]

KEY = "xinfer_lab"
"""Where in the metadata of a notebook its notes are while it is marked, and then what `read_marks` reads."""

MARKED = "xinfer_lab.marked"
"""Where in the resources of a conversion the marking is that was made elsewhere, if it was."""


class SubmissionExporter(NotebookExporter):
    """Reads submissions whatever they are: what is no notebook becomes one without answers and a note that says why."""

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> Any:
        """Convert the notebook in ``filename``."""
        if not getattr(self.parent, "_sanitizing", False):
            return super().from_filename(filename, resources=resources, **options)
        path = Path(filename)
        resources = dict(resources or {})
        if MARKED in resources:
            resources[KEY] = resources[MARKED].notebook
        else:
            try:
                resources[KEY] = read_notebook(path)
            except UnreadableNotebook as error:
                resources[KEY] = Notebook((), (f"This notebook could not be read: {error}.",))
        resources.setdefault("metadata", {}).update({"name": path.stem, "path": str(path.parent)})
        return self.from_notebook_node(_notebook([], {}), resources=resources, **options)  # type: ignore[no-untyped-call]


class LabStep(NbGraderPreprocessor):  # type: ignore[misc]
    """What these steps know: the lab that a notebook belongs to."""

    def lab(self, resources: Any) -> Lab:
        """The lab of the notebook that is converted."""
        coursedir = self.parent.parent.coursedir
        assignment, name = resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"] + ".ipynb"
        source, released = (
            Path(coursedir.format_path(folder, ".", assignment)) / name
            for folder in (coursedir.source_directory, coursedir.release_directory)
        )
        return read_lab(assignment, source, released)


class TransplantAnswers(LabStep):
    """Replaces a submission by the released notebook with the student's answers and own cells in it."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """The notebook that will be marked. Its notes are in its metadata."""
        found = transplant(self.lab(resources).released, resources[KEY])
        cells, own = [], 0
        for placed in found.cells:
            own += placed.cell.id is None
            cells.append(_node(placed, placed.cell.id or f"own-{own}"))
        kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, KEY: {"notes": list(found.notes)}}
        del resources[KEY]
        return _notebook(cells, metadata), resources


class VerifiedMarks(LabStep):
    """Marks a transplanted notebook in place of running it, and writes outputs from which nbgrader reads exactly these
    marks.

    Errors are written first, verdicts after: a notebook that was not marked to its end earns nothing by that.
    """

    sandbox = Enum(
        CHOICES, "auto", help="Where students' code runs: bubblewrap, none, or auto (bubblewrap where it works)."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """The notebook with a verdict under each grade cell, and notes at its top. Raises `MarkingError` where nothing
        can be marked.
        """
        lab = self.lab(resources)
        notes = list(nb.metadata.pop(KEY, {}).get("notes", ()))
        notebook = transplant(lab.released, parse_notebook(nb))
        if len(notebook.cells) != len(nb.cells):
            raise ValueError("the notebook to mark is not a transplanted one")
        for cell, placed in zip(nb.cells, notebook.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs = unmarked(placed)
        marked = resources.pop(MARKED, None) or self._mark(lab, notebook, notes, resources)
        marking = marked.marking
        for place, (cell, placed) in enumerate(zip(nb.cells, notebook.cells, strict=True)):
            if cell.cell_type == "code":
                cell.outputs = cell_outputs(placed, place, marking)
        if marking.notes:
            nb.cells.insert(0, _cell("markdown", notes_text(marking.notes), id=NOTES))
        for verdict in marking.verdicts:
            if verdict.report is not None and not verdict.report.passed:
                self.log.info("%s: %s. %s", verdict.grade_id, verdict.status.value, verdict.report.headline)
        nb.metadata[KEY] = marks_to_data(marked, lab)
        return nb, resources

    def _mark(self, lab: Lab, notebook: Transplant, notes: list[str], resources: Any) -> Marked:
        """Mark here and now, as plain nbgrader does."""
        about, coursedir = resources["nbgrader"], self.parent.parent.coursedir
        folder = coursedir.format_path(coursedir.submitted_directory, about["student"], about["assignment"])
        version = collect(Path(folder), lab.name).version
        marker = self._marker()
        marking = marker.mark_transplant(lab, Transplant(notebook.cells, (), notebook.missing), notes)
        return Marked(Notebook(()), marking, version, marker.sandbox.words, marker.sandbox.isolated)

    def _marker(self) -> Marker:
        """One marker for one run of the converter: its trusted process and its drawn cases serve all submissions."""
        converter = self.parent.parent
        marker = _MARKERS.get(converter)
        if marker is None:
            sandbox = open_sandbox(self.sandbox, hidden=(Path(converter.coursedir.root).resolve(),))
            (self.log.info if sandbox.isolated else self.log.warning)("%s", sandbox.words)
            _MARKERS[converter] = marker = Marker(sandbox)
            weakref.finalize(converter, marker.close)
        return marker


_MARKERS: weakref.WeakKeyDictionary[Any, Marker] = weakref.WeakKeyDictionary()


def _node(placed: Placed, name: str) -> NotebookNode:
    cell = placed.cell
    extra = {"attachments": dict(cell.attachments)} if cell.attachments else {}
    return _cell(cell.kind, cell.source, id=name, metadata=dict(cell.metadata), **extra)


def _cell(kind: str, source: str, **fields: Any) -> NotebookNode:
    make: Any = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell, "raw": v4.new_raw_cell}[kind]
    node: NotebookNode = make(source, **fields)
    return node


def _notebook(cells: list[NotebookNode], metadata: dict[str, Any]) -> NotebookNode:
    node: NotebookNode = v4.new_notebook(cells=cells, metadata=metadata)  # type: ignore[no-untyped-call]
    return node
