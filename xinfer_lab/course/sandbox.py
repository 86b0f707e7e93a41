"""Runs a student's code under bubblewrap, or in a plain process with limits, and says which.

Under bubblewrap the process has no network, sees a read-only system, this package without the modules that hold
answers, and an empty temporary folder of its own; no home, no course, no gradebook, no other submission, no other
process.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["CHOICES", "NoSandbox", "Sandbox", "open_sandbox"]

CHOICES = ("auto", "bubblewrap", "none", "as-root")
"""``as-root``: as ``none``, and where marking runs as root students' code does too."""

INSIDE = Path("/xinfer-lab")
"""Where the package is seen under bubblewrap."""

SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/fonts",
)
SCRATCH = 256 * 2**20
"""Bytes of the temporary folder under bubblewrap."""


class NoSandbox(RuntimeError):
    """The isolation that was asked for is not to be had; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A way to run Python apart. ``words`` say how far apart; ``isolated`` is whether files and network are out of
    reach.

    ``hidden``: folders and files that no student's code may see, whatever lies around them. ``drop``: the process
    starts as root and becomes a user without any rights before it reads a line of a student's.
    """

    isolated: bool
    words: str
    hidden: tuple[Path, ...] = ()
    bubblewrap: str | None = None
    drop: bool = False

    def command(self, view: Path, module: str, *, hidden: Iterable[Path] = ()) -> list[str]:
        """The command that runs ``python -m module`` with the package in the folder ``view``; more to hide in
        ``hidden``.
        """
        python = [sys.executable, "-s", "-P", "-m", module]
        if self.bubblewrap is None:
            return python
        return [self.bubblewrap, *_arguments(view, (*self.hidden, *hidden), self.drop), "--", *python]

    def environment(self, view: Path, scratch: Path) -> dict[str, str]:
        """The variables of such a process; ``scratch`` is its temporary folder where it does not get one of its own."""
        home = "/tmp" if self.bubblewrap else str(scratch)
        variables = {
            "PYTHONPATH": str(INSIDE if self.bubblewrap else view),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "MPLBACKEND": "Agg",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
            **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "IPYTHONDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME"), home),
        }
        for name in ("SYSTEMROOT", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            if name in os.environ:
                variables[name] = os.environ[name]
        return variables


def open_sandbox(choice: str, hidden: Sequence[Path] = ()) -> Sandbox:
    """The sandbox for ``choice``, one of `CHOICES`. "auto" takes bubblewrap where it works.

    Raises `NoSandbox` for "bubblewrap" where it does not work, and for "auto" and "none" where code would run as root.
    Tries it out: blocks for a fraction of a second.
    """
    if choice not in CHOICES:
        raise NoSandbox(f"there is no sandbox {choice!r}; choose one of {', '.join(CHOICES)}")
    if choice == "as-root":
        return Sandbox(False, f"NOT isolated, as asked: {_ACCOUNT}")
    if choice == "none":
        return _bare("NOT isolated, as asked")
    trouble = "bubblewrap is not installed"
    program = shutil.which("bwrap")
    if program is not None:
        trouble = ""
        for drop in (True, False) if _is_root() else (False,):
            sandbox = Sandbox(True, _words(drop), tuple(path.resolve() for path in hidden), program, drop)
            trouble = _try(sandbox)
            if not trouble:
                return sandbox
    if choice == "bubblewrap":
        raise NoSandbox(f"--sandbox bubblewrap cannot be had: {trouble}. {REMEDY}")
    return _bare(f"NOT isolated ({trouble})", REMEDY)


_ACCOUNT = "students' code can read the files of this account and use its network."


def _bare(words: str, remedy: str = "") -> Sandbox:
    """A plain process; where this is root, one that becomes a user without rights."""
    if not _is_root():
        return Sandbox(False, f"{words}: {_ACCOUNT} {remedy}".strip())
    if trouble := _cannot_drop():
        raise NoSandbox(
            f"{words}, and students' code would run as root: it cannot run as another user ({trouble}). Mark as "
            "another user who can read the Python installation, or with bubblewrap; or say --sandbox as-root, on a "
            f"machine that holds nothing else. {remedy}".strip()
        )
    user = "students' code runs as a user of its own, which can read what everybody can and use the network."
    return Sandbox(False, f"{words}: {user} {remedy}".strip(), drop=True)


@cache
def _cannot_drop() -> str:
    return _try(Sandbox(False, "", drop=True))


REMEDY = (
    "On Debian and Ubuntu: apt install bubblewrap, with user namespaces allowed. "
    "Elsewhere mark in a container or a virtual machine that holds nothing else."
)


STUCK = 600.0
"""Seconds after which the trial counts as stuck. Long: a loaded machine must not pass for one that cannot isolate."""


def _words(drop: bool) -> str:
    user = "as a user of its own" if drop else "in a user namespace of its own"
    return f"Isolated by bubblewrap: no network, a read-only system, no sight of the course, {user}."


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def _try(sandbox: Sandbox) -> str:
    """What keeps ``sandbox`` from working, or ''."""
    from xinfer_lab.course.package_view import PACKAGE

    command = sandbox.command(PACKAGE.parent, "xinfer_lab.course.confine")
    if sandbox.drop:
        command.append("--drop")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=STUCK, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} does not start: {error}"
    words = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    what = "bubblewrap does not work here" if sandbox.bubblewrap else "Python does not run as another user"
    return "" if done.returncode == 0 else f"{what}: {words[:300]}"


def _arguments(view: Path, hidden: Sequence[Path], drop: bool) -> list[str]:
    arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--new-session", "--die-with-parent", "--clearenv"]
    if drop:
        arguments += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--cap-drop", "ALL"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for folder, size in (("/dev/shm", SCRATCH), ("/tmp", SCRATCH)):
        arguments += ["--perms", "1777", *_size(size), "--tmpfs", folder]
    # The deeper of two paths is mounted later and wins: a virtual environment inside the hidden course is seen all the
    # same.
    mounts = [(path, "show") for path in _shown()] + [(path, "hide") for path in hidden if path.exists()]
    made = {Path("/"), Path("/tmp"), Path("/dev")}
    shown: list[Path] = []
    covers: list[str] = []
    for path, what in sorted(mounts, key=lambda mount: (len(mount[0].parts), mount[1] == "hide", str(mount[0]))):
        inside = any(path.is_relative_to(other) for other in shown)
        if what == "hide":
            if inside:
                arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
                covers += [str(path)] if path.is_dir() else []
                shown.append(path)
            continue
        for parent in reversed(path.parents):
            if parent not in made and not inside:
                made.add(parent)
                arguments += ["--perms", "0755", "--dir", str(parent)]
        if path.is_symlink() and len(path.parts) == 2:
            arguments += ["--symlink", os.readlink(path), str(path)]
        else:
            arguments += ["--ro-bind", str(path), str(path)]
            shown.append(path)
    arguments += ["--ro-bind", str(view), str(INSIDE), "--chdir", "/tmp"]
    for folder in (*covers, "/dev", "/"):
        arguments += ["--remount-ro", folder]
    for name, value in Sandbox(True, "", bubblewrap="bwrap").environment(view, Path("/tmp")).items():
        arguments += ["--setenv", name, value]
    return arguments


def _size(size: int) -> list[str]:
    return ["--size", str(size)] if _knows_size() else []


def _knows_size() -> bool:
    program = shutil.which("bwrap")
    if program is None:
        return False
    if program not in _KNOWS:
        _KNOWS[program] = (
            "--size" in subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
        )
    return _KNOWS[program]


_KNOWS: dict[str, bool] = {}


def _shown() -> list[Path]:
    """What Python needs to run: the system's programs and libraries, and the installation that runs this."""
    python = {
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_paths()["stdlib"],
        os.path.dirname(os.path.realpath(sys.executable)),
    }
    if site.ENABLE_USER_SITE:
        python.add(site.getusersitepackages())
    paths = [Path(path) for path in SYSTEM] + [Path(path).resolve() for path in python]
    # Where the environment is reached by a link, it has to be there under that name too.
    paths += [Path(path) for path in python if Path(path).resolve() != Path(path)]
    found: list[Path] = []
    for path in sorted({path for path in paths if path.exists()}, key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) for other in found if not other.is_symlink()):
            found.append(path)
    return found
