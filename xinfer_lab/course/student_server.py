"""What `make lab` adds to the Jupyter server: the start page, a place for progress, and a Validate that does not block.

A server extension, switched on by config/jupyter. It takes the place of nbgrader's own Validate, which runs a whole
notebook on the server's only thread, so that meanwhile nothing in JupyterLab answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbgrader
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.ioloop import IOLoop

from xinfer_lab.course.nbgrader_process import nbgrader_environment
from xinfer_lab.course.start_page import labs_in, render
from xinfer_lab.engine.parts import kept_parts
from xinfer_lab.grading.keep import FOLDER
from xinfer_lab.grading.keep import VARIABLE as ENGINE
from xinfer_lab.grading.progress import VARIABLE, read_outcomes

__all__ = ["StartPage", "Validate", "validate"]

START = "xinfer-lab"
PROGRESS = ".progress"
"""Beside the labs' folder, so that labs/ stays what solutions/ gives."""


class StartPage(JupyterHandler):
    """GET: the start page."""

    @web.authenticated
    def get(self) -> None:
        """Read afresh each time: notebooks and outcomes are small."""
        labs = labs_in(Path(self.settings["xinfer_lab_labs"]), read_outcomes(Path(os.environ[VARIABLE])))
        self.set_header("Cache-Control", "no-store")
        self.finish(render(labs, base_url=self.base_url, parts=kept_parts(Path(os.environ[ENGINE]))))


class Validate(JupyterHandler):
    """POST ?path=NOTEBOOK: what nbgrader's Validate says of it, in nbgrader's form."""

    @web.authenticated
    async def post(self) -> None:
        """Answers when the notebook has run; the server goes on with everything else meanwhile."""
        labs = Path(self.settings["xinfer_lab_labs"]).resolve()
        notebook = (labs / self.get_argument("path")).resolve()
        if not notebook.is_relative_to(labs):
            raise web.HTTPError(403, "this notebook is not in the labs' folder")
        said = await IOLoop.current().run_in_executor(None, validate, labs.parent, notebook)
        self.finish(json.dumps(said))


class Version(JupyterHandler):
    """GET ?version=V: whether the button in JupyterLab belongs to the nbgrader that is installed."""

    @web.authenticated
    def get(self) -> None:
        """nbgrader's form."""
        asked, there = self.get_argument("version"), nbgrader.__version__
        differ = f"JupyterLab's Validate button is of nbgrader {asked}, but {there} is installed; install it anew."
        self.finish(json.dumps({"success": True} if asked == there else {"success": False, "message": differ}))


def validate(root: Path, notebook: Path) -> dict[str, Any]:
    """What `xinfer_lab.course.validate` says of ``notebook``, from a process of its own in ``root``; blocks."""
    done = subprocess.run(
        [sys.executable, "-m", "xinfer_lab.course.validate", str(notebook)],
        cwd=root, env=nbgrader_environment(root), capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"success": False, "value": f"Validate ended with status {done.returncode}:\n{done.stderr[-2000:]}"}
    return said


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    app = server.web_app
    app.settings["xinfer_lab_labs"] = server.root_dir
    # Kernels inherit them: that is how checks know where to keep what they said, and what passed.
    beside = Path(server.root_dir).resolve().parent
    os.environ.setdefault(VARIABLE, str(beside / PROGRESS))
    os.environ.setdefault(ENGINE, str(beside / FOLDER))
    # The style of the labs, after one of the user's own. JupyterLab's handler has this very list.
    app.settings["static_custom_path"][1:1] = [os.path.join(folder, "custom") for folder in server.config_file_paths]
    handlers = {START: StartPage, "assignments/validate": Validate, "nbgrader_version": Version}
    base = app.settings["base_url"]
    app.add_handlers(".*$", [(url_path_join(base, pattern), handler) for pattern, handler in handlers.items()])
