"""What happens to a class's machine: kills, interrupts, a gradebook that is no use. Real processes, real signals."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.classes import LAB, SmallClass
from tests.command_line import PLAIN, invoke, refused
from tests.marking import hand_in, notebook
from tests.test_course_nbgrader import FULL
from xinfer_lab.course.autograde import Progress
from xinfer_lab.course.job import close_markers
from xinfer_lab.course.workers import Workers

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    return SmallClass(tmp_path_factory.mktemp("released"))


@pytest.fixture
def course(released: SmallClass, tmp_path: Path) -> SmallClass:
    return released.copy(tmp_path / "course")


# --------------------------------------------------------------------------------------------- killed from outside


@contextmanager
def killer(times: int) -> Iterator[list[int]]:
    """Within the block the first ``times`` processes in which students' code runs are killed, as where memory runs
    out.
    """
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not over.is_set() and len(killed) < times:
            for process in psutil.Process().children(recursive=True):
                try:
                    words = process.cmdline()
                    # Not bubblewrap itself: killed before it is ready, it leaves what it started alive and at work.
                    if words and "bwrap" not in words[0] and "xinfer_lab.course.recorder_process" in words:
                        process.kill()
                        killed.append(process.pid)
                        break
                except psutil.Error:
                    continue
            over.wait(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@contextmanager
def one_worker() -> Iterator[Workers]:
    with ThreadPoolExecutor(1) as executor:
        yield Workers(executor, lambda: 1, (), "1 job at a time")
        executor.submit(close_markers).result()


@POSIX
def test_a_sandbox_that_something_else_kills_is_tried_again_and_costs_nothing(course: SmallClass) -> None:
    course.submit("right", notebook(hand_in()))
    with one_worker() as worker, killer(1) as killed:
        assert course.mark(worker)[0] == Progress(done=1)
    assert len(killed) == 1 and course.scores("right") == FULL


@POSIX
@pytest.mark.slow
def test_one_that_is_killed_each_time_is_the_machines_fault_and_never_a_zero(course: SmallClass) -> None:
    course.submit("right", notebook(hand_in(own={"setup": "import time\ntime.sleep(3)"})))
    with one_worker() as worker:
        with killer(99):
            progress, outcomes = course.mark(worker)
        assert progress == Progress(failed=1)
        assert "killed from outside (signal 9) (3 times; this is the machine's fault" in outcomes[0].trouble
        assert set(course.statuses("right").values()) == {"not marked", "graded by hand"}
        assert course.mark(worker)[0] == Progress(done=1)
    assert course.scores("right") == FULL


# ---------------------------------------------------------------------------------------------------------- Ctrl-C


@POSIX
@pytest.mark.parametrize("between", [0.0, pytest.param(0.015, marks=pytest.mark.slow)])
def test_three_interrupts_at_once_end_it_and_all_that_it_started(between: float, course: SmallClass) -> None:
    for number in range(3):
        course.submit(f"slow-{number}", notebook(hand_in(own={"setup": "import time\ntime.sleep(60)"})))
    command = [sys.executable, "-m", "xinfer_lab", "autograde", LAB, "--jobs", "2", "--root", str(course.root)]
    with subprocess.Popen(
        command, env={**course.environment(), **PLAIN}, cwd=course.root, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        below = _sandboxes(process)
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(between)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    assert "0 marked, 0 not marked, 3 left. Run the same command to continue." in said
    assert psutil.wait_procs(below, timeout=30)[1] == []


def _sandboxes(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """All below ``process``, once two students' code runs."""
    watched = psutil.Process(process.pid)
    for _ in range(1200):
        below, count = watched.children(recursive=True), 0
        for one in below:
            with suppress(psutil.Error):
                count += "recorder_process" in " ".join(one.cmdline())
        if count >= 2:
            return below
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("nothing was started")


# --------------------------------------------------------------------------------------------------- the gradebook


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut_off(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 3])


def numbers(path: Path) -> None:
    path.write_text("1\n2\n3\n" * 500, encoding="utf-8")


@pytest.mark.parametrize("command", [("export",), ("autograde", LAB), ("release", LAB), ("feedback", LAB)])
@pytest.mark.parametrize(
    ("spoil", "why"), [(folder, "is a folder"), (cut_off, "is damaged"), (numbers, "is no database")]
)
def test_a_gradebook_that_is_none_is_named_in_a_sentence(
    spoil: object, why: str, command: tuple[str, ...], course: SmallClass
) -> None:
    course.submit("right", notebook(hand_in()))
    (course.root / "autograded" / "right" / LAB).mkdir(parents=True)
    before = sorted((course.root / "labs" / LAB).iterdir())
    spoil(course.root / "gradebook.db")
    said = invoke(*command, "--root", course.root)
    last = said.stderr.splitlines()[-1]
    assert said.exit_code == 2 and "gradebook.db" in last and why in last, said.stderr
    assert sorted((course.root / "labs" / LAB).iterdir()) == before


@pytest.mark.slow
def test_a_gradebook_that_another_program_holds_is_named_in_a_sentence(course: SmallClass) -> None:
    course.submit("right", notebook(hand_in()))
    holder = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    try:
        holder.execute("begin exclusive")
        assert "is locked by another program" in refused(invoke("export", "--root", course.root))
        said = invoke("autograde", LAB, "--root", course.root)
        assert said.exit_code == 2 and "is locked by another program" in said.stderr.splitlines()[-1]
    finally:
        holder.close()
