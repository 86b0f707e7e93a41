"""nbgrader's autograde step by way of `Marker`, so that its button and its command take the verified path.

nbgrader reads a submission (`SubmissionExporter`), puts answers into the released notebook (`TransplantAnswers`, before
its own checks), and stores marks from the outputs of grade cells, which `VerifiedMarks` writes in the place of running
the notebook.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from xinfer_lab.course.compose import KEY, empty, place, put_verdicts
from xinfer_lab.course.handed_in import collect
from xinfer_lab.course.job import Marked, marked_by, nothing_to_mark
from xinfer_lab.course.lab import Lab, read_lab
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.notebook import parse_notebook
from xinfer_lab.course.outputs import unmarked
from xinfer_lab.course.sandbox import CHOICES, open_sandbox
from xinfer_lab.course.taken import take
from xinfer_lab.course.transplant import Transplant, transplant

__all__ = ["LabStep", "SubmissionExporter", "TransplantAnswers", "VerifiedMarks"]


class SubmissionExporter(NotebookExporter):
    """Reads submissions whatever they are: where there is no notebook, the lab as released, and why."""

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> Any:
        """Convert the notebook in ``filename``."""
        if not getattr(self.parent, "_sanitizing", False):
            return super().from_filename(filename, resources=resources, **options)
        path = Path(filename)
        resources = dict(resources or {})
        converter: Any = self.parent
        lab = _lab(converter.coursedir, resources)
        taken = take(lab, collect(path.parent))
        notebook = lab.released if taken.trouble else taken.notebook
        resources[KEY] = replace(notebook, notes=(*taken.notes, *notebook.notes))
        resources.setdefault("metadata", {}).update({"name": path.stem, "path": str(path.parent)})
        return self.from_notebook_node(empty(), resources=resources, **options)  # type: ignore[no-untyped-call]


class LabStep(NbGraderPreprocessor):  # type: ignore[misc]
    """What these steps know: the lab that a notebook belongs to."""

    def lab(self, resources: Any) -> Lab:
        """The lab of the notebook that is converted."""
        return _lab(self.parent.parent.coursedir, resources)


def _lab(coursedir: Any, resources: Any) -> Lab:
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
        made = place(transplant(self.lab(resources).released, resources[KEY]))
        del resources[KEY]
        return made, resources


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
        marked = self._mark(lab, notebook, notes, resources)
        put_verdicts(nb, notebook, marked, lab)
        for verdict in marked.marking.verdicts:
            if verdict.report is not None and not verdict.report.passed:
                self.log.info("%s: %s. %s", verdict.grade_id, verdict.status.value, verdict.report.headline)
        return nb, resources

    def _mark(self, lab: Lab, notebook: Transplant, notes: list[str], resources: Any) -> Marked:
        """Mark here and now, as plain nbgrader does."""
        about, coursedir = resources["nbgrader"], self.parent.parent.coursedir
        folder = coursedir.format_path(coursedir.submitted_directory, about["student"], about["assignment"])
        handed_in = collect(Path(folder))
        taken = take(lab, handed_in)
        if taken.trouble:
            self.log.warning("%s needs attention: %s", about["student"], taken.trouble)
            return nothing_to_mark(lab, handed_in, taken.trouble, taken.notes)
        marker = self._marker()
        marking = marker.mark_transplant(lab, Transplant(notebook.cells, (), notebook.missing), notes)
        return marked_by(marker, taken.notebook, marking, handed_in)

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
