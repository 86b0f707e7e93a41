"""nbgrader's feedback step with this course's pages: plain `nbgrader generate_feedback` and Formgrader's button."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from nbconvert.exporters import TemplateExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades
from traitlets import default

from xinfer_lab.course.clean import svg_image
from xinfer_lab.course.feedback.page import Page, Points, page_of
from xinfer_lab.course.feedback.safe import code, cut, markdown
from xinfer_lab.course.preprocessors import LabStep

__all__ = ["FeedbackExporter", "FeedbackPage", "FeedbackPoints", "render"]

TEMPLATES = Path(__file__).parent / "templates"
KEY = "xinfer_lab"


class FeedbackPoints(GetGrades):  # type: ignore[misc]
    """Puts the gradebook's points into the notebook, and who gave them."""

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        mark = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(mark["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        found = Points(grade.score, grade.max_score, grade.auto_score, grade.manual_score, grade.extra_credit or 0.0)
        resources.setdefault(KEY, {})[mark["grade_id"]] = found


class FeedbackPage(LabStep):
    """Makes the page out of a marked notebook; the template shows it."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """The notebook, with its page among the resources. Raises ValueError where it belongs to another release."""
        about, lab = resources["nbgrader"], self.lab(resources)
        # `nbgrader generate_feedback` and Formgrader's button come here without having asked.
        if (stamp := nb.metadata.get(KEY)) is not None and stamp.get("release") != lab.version:
            raise ValueError(f"this notebook was marked with another release of {lab.assignment}; mark it anew")
        penalty = float(about.get("late_penalty") or 0.0)
        points = resources.get(KEY, {})
        resources["page"] = page_of(lab, nb, points, about["student"], late_penalty=penalty)
        return nb, resources


class FeedbackExporter(TemplateExporter):
    """Writes a `FeedbackPage` as HTML. The template is the package's own; nbconvert's and nbgrader's, which load
    scripts from other hosts, have no part in it.
    """

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    @default("template_name")
    def _template_name_default(self) -> str:
        return "feedback"

    @default("template_paths")
    def _template_paths_default(self) -> list[str]:
        return [str(TEMPLATES)]

    def get_template_names(self) -> list[str]:
        """The one template that there is."""
        return [self.template_name]

    def _template_paths(self, prune: bool = True, root_dirs: Sequence[str] | None = None) -> list[str]:
        return [str(TEMPLATES)]

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()  # type: ignore[no-untyped-call]
        return _prepared(environment)


def _prepared(environment: Environment) -> Environment:
    """Everything is escaped unless it comes out of `safe`."""
    environment.autoescape = True
    environment.filters.update({"code": code, "cut": cut, "safe_markdown": markdown})
    environment.globals["svg_image"] = svg_image
    return environment


def render(page: Page) -> str:
    """The HTML of ``page``."""
    exporter = FeedbackExporter()  # type: ignore[no-untyped-call]
    return str(exporter.template.render(resources={"page": page}))
