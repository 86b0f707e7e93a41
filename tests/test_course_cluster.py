"""A class marked beyond one process: a Dask scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.classes import SmallClass
from tests.marking import hand_in, notebook
from tests.project import ROOT
from tests.test_course_nbgrader import FULL
from xinfer_lab.course import cluster as cluster_module
from xinfer_lab.course.autograde import Outcome, Progress
from xinfer_lab.course.cluster import NoCluster, dask_workers

pytestmark = [pytest.mark.process, pytest.mark.slow]


def start(stack: ExitStack, *arguments: str) -> psutil.Popen:
    """``python -m distributed.cli.ARGUMENTS``, ended with ``stack``."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    module, *rest = arguments
    process = psutil.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *rest], env=env, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip

    def end() -> None:
        process.kill()
        process.wait()
        process.stderr.close()

    stack.callback(end)
    return process


def read_until(process: psutil.Popen, words: str) -> str:
    """The line of ``process`` that holds ``words``; blocks until it comes."""
    said = []
    for line in process.stderr:
        said.append(line.decode(errors="replace"))
        if words in said[-1]:
            threading.Thread(target=process.stderr.read, daemon=True).start()  # so that it never waits for a reader
            return said[-1]
    raise AssertionError("".join(said))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[psutil.Popen]]]:
    folder = str(tmp_path_factory.mktemp("dask"))
    with ExitStack() as stack:
        scheduler = start(stack, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        address = read_until(scheduler, "Scheduler at:").split()[-1]
        workers = []
        for _ in range(2):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder]
            workers.append(start(stack, "dask_worker", address, *options))
        for worker in workers:
            read_until(worker, "Starting established connection")
        yield address, workers


def test_a_class_is_marked_by_the_workers_of_a_cluster_and_one_that_is_killed_loses_nothing(
    cluster: tuple[str, list[psutil.Popen]], tmp_path: Path
) -> None:
    address, workers = cluster
    course = SmallClass(tmp_path)
    wrong = {"double": "def double(n):\n    return 0", "triple": "def triple(n):\n    return 3 * n"}
    for number in range(3):
        course.submit(f"student-{number}", notebook(hand_in(wrong if number == 1 else None)))
    course.submit("cut-off", "{")
    killed: list[int] = []

    def kill_one(progress: Progress, outcome: Outcome | None) -> None:
        if outcome is not None and not killed:
            killed.append(workers[1].pid)
            workers[1].kill()

    with dask_workers(address) as found:
        assert found.capacity() == 2 and "2 workers" in found.words
        progress, _ = course.mark(found, report=kill_one)
        assert found.capacity() == 1
    assert killed and progress == Progress(done=3, failed=1)
    for number in (0, 2):
        assert course.scores(f"student-{number}") == FULL
    assert course.scores("student-1") == {**FULL, "check-double": 0}
    assert set(course.statuses("cut-off").values()) == {"not marked", "graded by hand"}


def test_a_worker_with_another_version_of_the_package_is_refused(
    cluster: tuple[str, list[psutil.Popen]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import xinfer_lab.course.package_view as view

    monkeypatch.setattr(view, "fingerprint", lambda package: "another")
    with pytest.raises(NoCluster, match="has another version of xinfer-lab"), dask_workers(cluster[0]):
        pass


def test_where_no_scheduler_answers_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "ANSWER", 0.2)
    with pytest.raises(NoCluster, match="no Dask scheduler answers at tcp://127"), dask_workers("tcp://127.0.0.1:9"):
        pass


def test_without_dask_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NoCluster, match=r"pip install 'xinfer-lab\[cluster\]'"), dask_workers("tcp://127.0.0.1:9"):
        pass


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("somewhere", "'somewhere' has no port; wanted is an address such as tcp://somewhere:8786"),
        ("tcp://10.0.0.1", "has no port"),
        ("tcp://10.0.0.1:99999", "has no port"),
        ("http://10.0.0.1:8786", "is no address of a scheduler"),
        ("10.0.0.1:8786 and more", "is no address of a scheduler"),
        ("tls://127.0.0.1:1", "needs certificates"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(address: str, words: str) -> None:
    with pytest.raises(NoCluster, match=words), dask_workers(address):
        pass


@pytest.mark.parametrize("what", ["worker", "scheduler"])
def test_a_cluster_that_goes_away_is_told_and_what_was_marked_is_kept(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE", 1.0)
    course = SmallClass(tmp_path / "course")
    for number in range(3):
        course.submit(f"student-{number}", notebook(hand_in()))
    with ExitStack() as stack:
        scheduler = start(stack, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        address = read_until(scheduler, "Scheduler at:").split()[-1]
        with pytest.raises(NoCluster, match="has no workers; start some: dask worker tcp://"), dask_workers(address):
            pass
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
        worker = start(stack, "dask_worker", address, *options)
        read_until(worker, "Starting established connection")

        def kill(progress: Progress, outcome: Outcome | None) -> None:
            if outcome is not None:
                (worker if what == "worker" else scheduler).kill()

        words = "has no workers any more" if what == "worker" else "does not answer any more"
        with pytest.raises(NoCluster, match=words), dask_workers(address) as found:
            course.mark(found, report=kill)
    assert sum(score == FULL for score in map(course.scores, ["student-0"])) == 1
