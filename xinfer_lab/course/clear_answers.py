"""Turns an instructor's answer into a student's gap."""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions

__all__ = ["RULES", "ClearAnswers"]

RULES = "rules"
"""In a cell's metadata: which rules its text states, by piece and name, each with the words that state it."""

_GAP = re.compile(r"^[ \t]*### GAP:(?: (.*))?$", re.MULTILINE)


class ClearAnswers(ClearSolutions):  # type: ignore[misc]  # nbgrader publishes no types
    """nbgrader's ClearSolutions, with the gap's text next to the answer that it stands for.

    ``### BEGIN SOLUTION: raise NotImplementedError("fill in about 5 lines")`` puts what follows the colon in the
    answer's place. Where the
    gap has several lines (a program to mend), each stands within the answer behind ``### GAP: ``. ``### BEGIN
    SOLUTION`` alone
    puts the configured stub there.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> Any:
        """As nbgrader's; the names of the rules that the cell states stay with the instructor."""
        cell.metadata.pop(RULES, None)
        return super().preprocess_cell(cell, resources, cell_index)

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if cell.cell_type != "code":
            return bool(super()._replace_solution_region(cell, language))
        begin, end = re.escape(self.begin_solution_delimeter), re.escape(self.end_solution_delimeter)
        region = re.compile(
            rf"^(?P<indent>[ \t]*)[^\n]*?{begin}(?:: *(?P<stub>\S[^\n]*?))?[ \t]*\n(?P<answer>.*?)^[^\n]*?{end}[^\n]*$",
            re.MULTILINE | re.DOTALL,
        )
        source = cell.source
        cell.source = region.sub(_gap, source)
        own = bool(cell.source != source)
        return bool(super()._replace_solution_region(cell, language)) or own


def _gap(region: re.Match[str]) -> str:
    """What stands in the place of ``region``: itself, where it has no gap of its own."""
    lines = _GAP.findall(region["answer"])
    if region["stub"] is not None:
        lines = [region["stub"], *lines]
    return "\n".join(f"{region['indent']}{line}".rstrip() for line in lines) if lines else region[0]
