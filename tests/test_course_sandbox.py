"""The sandbox says what it is, refuses what it is not, and hides what must not be seen; a child that takes too much is
ended.
"""

from __future__ import annotations

import errno
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tests.project import STUCK
from xinfer_lab.course import package_view, supervised
from xinfer_lab.course import sandbox as sandboxes
from xinfer_lab.course.package_view import PACKAGE, elsewhere, make_view, other_libraries
from xinfer_lab.course.sandbox import NoSandbox, open_sandbox
from xinfer_lab.course.supervised import Ended, Limits, Supervised

pytestmark = pytest.mark.process


def test_without_bubblewrap_it_is_refused_and_auto_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandboxes, "_is_root", lambda: False)
    with pytest.raises(NoSandbox, match=r"bubblewrap is not installed.*apt install bubblewrap"):
        open_sandbox("bubblewrap")
    sandbox = open_sandbox("auto")
    assert not sandbox.isolated and "NOT isolated (bubblewrap is not installed)" in sandbox.words


def test_a_bubblewrap_that_does_not_work_here_is_refused_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_try", lambda sandbox: "bubblewrap does not work here: no permission")
    monkeypatch.setattr(sandboxes, "_is_root", lambda: False)
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: "/usr/bin/bwrap")
    with pytest.raises(NoSandbox, match="no permission"):
        open_sandbox("bubblewrap")
    assert "no permission" in open_sandbox("auto").words


def test_none_is_a_choice_and_says_what_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_is_root", lambda: False)
    sandbox = open_sandbox("none")
    assert not sandbox.isolated and sandbox.words.startswith("NOT isolated, as asked")


def test_no_code_runs_as_root_unless_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_is_root", lambda: True)
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandboxes, "_cannot_drop", lambda: "")
    for choice in ("auto", "none"):
        sandbox = open_sandbox(choice)
        assert sandbox.drop and "as a user of its own" in sandbox.words
    monkeypatch.setattr(sandboxes, "_cannot_drop", lambda: "no permission")
    for choice in ("auto", "none"):
        with pytest.raises(NoSandbox, match=r"would run as root: .*no permission.*--sandbox as-root"):
            open_sandbox(choice)
    assert not open_sandbox("as-root").drop


def test_another_choice_is_refused() -> None:
    with pytest.raises(NoSandbox, match="auto, bubblewrap, none, as-root"):
        open_sandbox("docker")


def run_inside(code: str, hidden: tuple[Path, ...] = ()) -> str:
    """What ``code`` prints in a process under bubblewrap."""
    command = open_sandbox("bubblewrap", hidden=hidden).command(PACKAGE.parent, "xinfer_lab.course.confine")
    done = subprocess.run([*command[: command.index("-P") + 1], "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.bubblewrap
def test_hidden_folders_are_empty_even_inside_of_what_is_shown() -> None:
    assert json.loads(run_inside("import os, json; print(json.dumps(os.listdir('/usr/share')))")) != []
    inside = "import os, json; print(json.dumps([os.listdir('/usr/share'), os.access('/usr/share', os.W_OK)]))"
    assert json.loads(run_inside(inside, (Path("/usr/share"),))) == [[], False]


@pytest.mark.bubblewrap
def test_an_environment_inside_of_a_hidden_course_is_still_there() -> None:
    assert run_inside("import IPython; print('here')", (Path(sys.prefix).parent,)) == "here\n"


@pytest.mark.bubblewrap
def test_variables_of_the_account_do_not_get_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    assert "SOME_TOKEN" not in json.loads(run_inside("import os, json; print(json.dumps(dict(os.environ)))"))


def test_variables_of_the_account_do_not_reach_a_plain_process_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    assert "SOME_TOKEN" not in open_sandbox("as-root").environment(tmp_path, tmp_path)


def test_a_view_of_the_package_lacks_denied_modules_in_source_and_bytecode(tmp_path: Path) -> None:
    denied = ("xinfer_lab.grading.judges", "xinfer_lab.residency.streaming")
    view = make_view(denied, tmp_path)
    names = {path.relative_to(view).as_posix() for path in view.rglob("*")}
    assert "residency/serial.py" in names and "grading/verify_values.py" in names
    assert not [name for name in names if "truth" in name or "streaming" in Path(name).name]


def test_a_view_that_finds_no_room_leaves_nothing_and_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        Path(target).touch()
        raise OSError(errno.ENOSPC, "No space left on device", target)

    for _ in range(2):  # what the first attempt left is not told as the fault of the second
        with monkeypatch.context() as patched:
            copytree = functools.partial(shutil.copytree, copy_function=full)
            patched.setattr(package_view, "shutil", SimpleNamespace(**vars(shutil) | {"copytree": copytree}))
            with pytest.raises(OSError, match=r"cannot be written: .*No space left on device"):
                make_view((), tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_denied_modules_of_other_libraries_are_found_where_they_are_installed() -> None:
    import safetensors

    places = elsewhere(("safetensors", "json.decoder", "no_such_library", "xinfer_lab.qwen2"))
    assert places == (Path(safetensors.__path__[0]), Path(json.__path__[0]) / "decoder.py")


def test_libraries_that_no_recording_needs_are_told_apart_from_those_that_it_does() -> None:
    import nbgrader
    import torch
    import transformers

    hidden = other_libraries()
    for library in (nbgrader, transformers):
        assert Path(library.__path__[0]) in hidden
    assert Path(torch.__path__[0]) not in hidden
    for name in ("numpy", "IPython", "traitlets", "jedi", "matplotlib_inline", "typing_extensions", "comm", "sympy"):
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        assert not any(Path(found.origin).is_relative_to(place) for place in hidden)


# ------------------------------------------------------------ supervised processes


def child(code: str, **limits: float) -> Supervised:
    limits = {"memory": 2**29, "processes": 6, "output": 2**20, "idle": 20, "wall": STUCK, **limits}
    return Supervised([sys.executable, "-c", code], env=dict(os.environ), limits=Limits(**limits))  # type: ignore[arg-type]


def test_values_go_to_and_fro() -> None:
    process = child("import sys\nfor line in sys.stdin: print(line, end='', flush=True)")
    for value in ({"a": [1, None, "ü"]}, 7):
        process.send(value)
        assert process.receive(5) == value
    assert process.stop().cause == "exit"
    process.send("nobody is there")
    assert isinstance(process.receive(5), Ended)


FAMILY = """
import subprocess, sys, time
for _ in range(9):
    subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("code", "limits", "cause"),
    [
        ("while True: pass", {}, "cpu"),
        ("import time; time.sleep(1000)", {"idle": 2}, "idle"),
        ("import time\nwhile True: time.sleep(0.01); sum(range(10**5))", {"wall": 1.5}, "wall"),
        ("import time\nx = b'x' * 2**30; time.sleep(1000)", {}, "memory"),
        (FAMILY, {}, "processes"),
        ("while True: print('x' * 1000)", {}, "protocol"),
        ("print('x' * 2**21)", {}, "output"),
        ("print('NaN')", {}, "protocol"),
        ("import os; os._exit(3)", {}, "exit"),
    ],
)  # fmt: skip
def test_a_child_that_takes_too_much_is_ended_and_the_cause_is_told(
    code: str, limits: dict[str, float], cause: str
) -> None:
    process = child(code, **limits)
    # A slow machine takes a second for touching a gigabyte.
    ended = process.receive(0.7 if cause == "cpu" else 20)
    assert isinstance(ended, Ended) and ended.cause == cause and ended.words
    assert process.receive(1) is ended


def test_a_child_is_ended_when_the_time_for_all_is_up() -> None:
    ended = child("input()").receive(20, until=0.0)
    assert isinstance(ended, Ended) and ended.cause == "budget"


def test_the_last_words_on_stderr_are_kept() -> None:
    ended = child("raise RuntimeError('broken')").receive(5)
    assert "RuntimeError: broken" in ended.stderr


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="a process that is dead and not buried yet is POSIX's")
def test_a_process_that_is_dead_and_not_buried_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError("it waits")

    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        monkeypatch.setattr(supervised.time, "sleep", sleep)
        supervised._wait_for_the_end([psutil.Process(dead.pid)])
        monkeypatch.undo()
