"""Run a notebook's cells in one IPython shell, without a kernel: the outputs that they leave, written back.

    python -m tools.plain_run NOTEBOOK OUT

A cell that fails does not stop the others, as when a student runs them one by one. What a cell prints, shows and raises
becomes its outputs, in the notebook format's terms. Needs no sockets and no Jupyter client.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__all__ = ["main", "run_cells"]


def run_cells(notebook: Any) -> None:
    """Run all code cells of ``notebook`` in order, in this process, and set their outputs."""
    from IPython.core.displayhook import CapturingDisplayHook
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from nbformat.v4 import new_output
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = InteractiveShell.instance(config=config)  # type: ignore[no-untyped-call]
    results: list[Any] = []
    shell.display_trap.hook = CapturingDisplayHook(shell, results)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        raised: list[tuple[str, str, list[str]]] = []
        shell._showtraceback = lambda kind, value, lines, raised=raised: raised.append(  # type: ignore[method-assign]
            (kind.__name__, str(value), lines)
        )
        results.clear()
        with capture_output() as said:  # type: ignore[no-untyped-call]
            result = shell.run_cell(cell.source, store_history=False)
        cell.outputs = []
        if said.stdout:
            cell.outputs.append(new_output("stream", name="stdout", text=said.stdout))
        if said.stderr:
            cell.outputs.append(new_output("stream", name="stderr", text=said.stderr))
        shown = [(one.data, one.metadata) for one in said.outputs]
        shown += [(one["data"], one["metadata"]) for one in results]
        cell.outputs += [new_output("display_data", data=data, metadata=about or {}) for data, about in shown]
        for name, value, lines in raised:
            cell.outputs.append(new_output("error", ename=name, evalue=value, traceback=lines))
        assert result.success or raised, f"cell {cell.id} failed without saying how"


def main() -> int:
    """Run the notebook named first, and write it as it then is to the path named second."""
    import nbformat

    source, target = map(Path, sys.argv[1:3])
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    run_cells(notebook)
    nbformat.write(notebook, target)  # type: ignore[no-untyped-call]
    return 0


if __name__ == "__main__":
    sys.exit(main())
