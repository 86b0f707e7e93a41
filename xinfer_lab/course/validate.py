"""nbgrader's Validate as a process of its own: what the button in JupyterLab shows, as JSON on standard output.

python -m xinfer_lab.course.validate NOTEBOOK     in the course's folder, whose nbgrader_config.py holds
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

__all__ = ["main", "validation"]


def validation(notebook: Path) -> dict[str, Any]:
    """Run the saved ``notebook`` from its beginning in a fresh kernel, and say what failed.

    ``{"success": True, "value": {...}}`` in nbgrader's form, empty where every check passed; or ``{"success": False,
    "value": reason}``. Blocks for as long as the notebook runs.
    """
    from nbgrader.apps import NbGrader
    from nbgrader.nbgraderformat import SchemaTooNewError, SchemaTooOldError
    from nbgrader.validator import Validator

    try:
        app = NbGrader()
        app.config_file_paths.append(os.getcwd())
        app.load_config_file()
        return {"success": True, "value": Validator(config=app.config).validate(str(notebook))}
    except (SchemaTooOldError, SchemaTooNewError) as error:
        return {"success": False, "value": f"{notebook.name} is of another version of nbgrader's format: {error}"}
    except Exception as error:
        # For the one who runs the server; a student has no use for it.
        traceback.print_exc()
        reason = str(error).strip().splitlines()
        why = f"{notebook.name} could not be run from its beginning: {reason[0] if reason else type(error).__name__}. "
        return {"success": False, "value": why + "Save it, restart its kernel, run all its cells, and validate again."}


def main(arguments: list[str]) -> int:
    """Print what `validation` says of the notebook named."""
    (name,) = arguments
    with contextlib.redirect_stdout(sys.stderr):
        said = validation(Path(name))
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
