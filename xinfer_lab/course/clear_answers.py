"""How an instructor's answer becomes a student's gap."""

from __future__ import annotations

import re

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions

__all__ = ["ClearAnswers"]


class ClearAnswers(ClearSolutions):  # type: ignore[misc]  # nbgrader publishes no types
    """nbgrader's ClearSolutions, with the gap's text next to the answer that it stands for.

    ``### BEGIN SOLUTION: raise NotImplementedError("fill in about 5 lines")`` puts what follows the colon in the
    answer's place; ``### BEGIN SOLUTION`` alone puts the configured stub there.
    """

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        found = re.search(rf"{re.escape(self.begin_solution_delimeter)}: *(.*\S)", cell.source)
        if found is None or cell.cell_type != "code":
            return bool(super()._replace_solution_region(cell, language))
        usual = dict(self.code_stub)
        self.code_stub.update({language: found.group(1)})
        try:
            return bool(super()._replace_solution_region(cell, language))
        finally:
            self.code_stub.update(usual)
