"""The Jupyter server that `make lab` starts, on a course of its own in a temporary folder."""

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.project import ROOT

__all__ = ["PATIENCE", "Course", "apart", "running_course", "serving"]

PATIENCE = 120
"""Seconds. Long, for a machine with other work: what comes ends the wait at once."""


@dataclass(frozen=True)
class Course:
    """A running server: its folder, and the address at which it answers without asking for a token again."""

    folder: Path
    origin: str
    token: str

    @property
    def labs(self) -> Path:
        """What the server shows."""
        return self.folder / "labs"

    def url(self, path: str) -> str:
        """The address of ``path``, with the token."""
        return f"{self.origin}/{path}?token={self.token}"


def apart(home: Path) -> dict[str, str]:
    """The variables of a server that reads and writes nothing of the user's own settings."""
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XINFER"))}
    return environment | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }


@contextmanager
def serving(folder: Path, environment: dict[str, str], shown: str) -> Iterator[str]:
    """JupyterLab with ``shown``, a folder in ``folder``, until the block ends; its address. Its log is server.log."""
    command = [sys.executable, "-m", "jupyterlab", shown, "--no-browser", "--ServerApp.ip=127.0.0.1"]
    command += ["--ServerApp.port=0", "--ServerApp.allow_root=True", "--IdentityProvider.token=tests"]
    with (
        open(folder / "server.log", "w", encoding="utf-8") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        addresses: queue.Queue[str | None] = queue.Queue()

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                log.write(line)
                log.flush()
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    addresses.put(found[0])
            addresses.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            origin = addresses.get(timeout=PATIENCE)
            assert origin is not None, (folder / "server.log").read_text(encoding="utf-8")
            yield origin
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


@contextmanager
def running_course(folder: Path) -> Iterator[Course]:
    """A copy of labs/ and the configuration in ``folder``, served until the block ends; nothing of the user's own
    settings is read or written."""
    for name in ("labs", "config"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    environment = apart(folder / "home") | {
        "JUPYTER_CONFIG_PATH": str(folder / "config" / "jupyter"),
        "PYTHONPATH": str(ROOT),
    }
    with serving(folder, environment, "labs") as origin:
        yield Course(folder, origin, "tests")
