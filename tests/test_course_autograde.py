"""A class is marked at once: each for what it holds, and whatever happens meanwhile loses nothing of anybody's."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from nbformat import NotebookNode

from tests.classes import LAB, SmallClass, remembered
from tests.marking import BARE, BUBBLEWRAP, hand_in, notebook
from tests.project import STUCK
from tests.test_course_nbgrader import FULL, said
from xinfer_lab.course import autograde as running
from xinfer_lab.course import store
from xinfer_lab.course import workers as workers_module
from xinfer_lab.course.autograde import ClassError, Outcome, Progress
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.job import Job, Marked, mark_job
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.lock import Busy
from xinfer_lab.course.verdict import Status
from xinfer_lab.course.workers import Workers, local_workers

pytestmark = pytest.mark.process

OWN_TRIPLE = {"triple": "def triple(n):\n    return 3 * n"}
WRONG = {"double": "def double(n):\n    return 0", **OWN_TRIPLE}
FORK = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
DISK = (
    "import tempfile, pathlib\nfolder = pathlib.Path(tempfile.gettempdir())\nnumber = 0\n"
    "while True:\n    number += 1\n    (folder / f'mine-{number}').write_bytes(bytes(2**24))"
)
UNREADABLE = {"cut-off": "not valid JSON", "empty-handed": "lab.ipynb is missing", "deep": "JSON"}
MEMORY = "hold = []\nwhile True:\n    hold.append(bytearray(2**27))"


def outputs(size: int) -> list[dict]:
    said = {"output_type": "stream", "name": "stdout", "text": "x" * size}
    return [{**cell, "outputs": [said]} if cell["id"] == "double" else cell for cell in hand_in()]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """The course as it is released, before anybody hands in."""
    return SmallClass(tmp_path_factory.mktemp("released"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Workers]:
    with remembered() as workers:
        yield workers


@pytest.fixture(scope="module")
def marked(empty: SmallClass, tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """A class of which a worker is killed when the first marking has been stored."""
    course = empty.copy(tmp_path_factory.mktemp("class") / "course")
    for number in range(2):
        course.submit(f"right-{number}", notebook(hand_in()))
    course.submit("wrong", notebook(hand_in(WRONG)))
    course.submit("huge", notebook(outputs(20 * 2**20)))
    course.submit("cut-off", json.dumps(notebook(hand_in()))[:500])
    course.submit("renamed", notebook(hand_in()), "lab (1).ipynb")
    course.put("empty-handed", "readme.txt", b"see you")
    course.put("deep", "lab.ipynb", b"[" * 10**6)
    course.submit("dies", notebook(hand_in(own={"setup": "import os\nos._exit(1)"})))
    if BUBBLEWRAP:
        for name, code in (("forks", FORK), ("fills", DISK), ("hoards", MEMORY)):
            course.submit(name, notebook(hand_in(own={"setup": code})))
    killed = []

    def kill_one(progress: Progress, outcome: Outcome | None) -> None:
        if outcome is not None and not killed:
            killed.extend(p for p in psutil.Process().children() if "spawn_main" in " ".join(p.cmdline()))
            killed[-1].kill()

    with local_workers(2) as workers:
        course.progress, course.outcomes = course.mark(workers, report=kill_one)
    assert len(killed) == 2
    return course


@pytest.mark.slow
def test_all_are_marked_though_a_worker_was_killed(marked: SmallClass) -> None:
    students = {path.name for path in (marked.root / "submitted").iterdir()}
    assert marked.progress == Progress(done=len(students) - len(UNREADABLE), failed=len(UNREADABLE))
    assert sorted(outcome.student for outcome in marked.outcomes) == sorted(students)


@pytest.mark.parametrize("student", ["right-0", "right-1", "huge", "renamed", "dies"])
def test_right_answers_earn_all_points_whatever_else_is_in_the_class(student: str, marked: SmallClass) -> None:
    assert marked.scores(student) == FULL


@pytest.mark.bubblewrap
@pytest.mark.parametrize("student", ["forks", "fills", "hoards"])
def test_what_takes_the_machine_takes_nothing_of_anybody(student: str, marked: SmallClass) -> None:
    told = [said(marked.marked(student), name) for name in FULL if name.startswith("check-")]
    assert marked.scores(student) == FULL, f"{marked.statuses(student)}: {told}"


def test_a_wrong_answer_loses_its_points_alone(marked: SmallClass) -> None:
    assert marked.scores("wrong") == {**FULL, "check-double": 0}
    assert marked.statuses("wrong")["double"] == "failed"


@pytest.mark.parametrize(("student", "note"), UNREADABLE.items())
def test_what_cannot_be_read_earns_nothing_is_told_why_and_is_never_called_marked(
    student: str, note: str, marked: SmallClass
) -> None:
    assert {score or 0 for score in marked.scores(student).values()} == {0}
    assert set(marked.statuses(student).values()) == {"not marked", "graded by hand"}
    assert note in "".join(marked.marked(student)[0]["source"]) and note in marked.marks(student).trouble
    assert note in said(marked.marked(student), "check-double")
    with marked.book().gradebook() as book:
        assert not book.find_submission(LAB, student).needs_manual_grade, "nobody is asked to read an answer"


def test_files_that_were_handed_in_stay_as_they_are(marked: SmallClass) -> None:
    folder = marked.root / "submitted" / "renamed" / LAB
    assert [path.name for path in folder.iterdir()] == ["lab (1).ipynb"]


def test_a_second_run_has_nothing_to_do_and_again_gives_the_same(marked: SmallClass, worker: Workers) -> None:
    progress, outcomes = marked.mark(worker)
    assert progress == Progress(kept=marked.progress.done, failed=len(UNREADABLE))
    assert {outcome.student for outcome in outcomes} == set(UNREADABLE), "what needs attention is said each time"
    chosen = ("right-0", "wrong", "cut-off")
    before = {student: (marked.scores(student), marked.statuses(student)) for student in chosen}
    progress, _ = marked.mark(worker, students=chosen, again=True)
    assert progress == Progress(done=2, failed=1)
    assert {student: (marked.scores(student), marked.statuses(student)) for student in chosen} == before


@pytest.mark.slow
def test_plain_nbgrader_and_a_class_mark_alike(marked: SmallClass, worker: Workers) -> None:
    shown = marked.scores("wrong"), marked.statuses("wrong")
    marked.nbgrader("autograde", LAB, "--student", "wrong", "--force")
    assert (marked.scores("wrong"), marked.statuses("wrong")) == shown
    progress, _ = marked.mark(worker, students=("wrong",))
    assert progress == Progress(kept=1), "what nbgrader's own command marked is marked"


def test_who_handed_in_nothing_is_named(marked: SmallClass, worker: Workers) -> None:
    with pytest.raises(ClassError, match=r"nothing was handed in for lab9-small by nobody"):
        marked.mark(worker, students=("nobody",))


# -------------------------------------------------------------------------------------------------------- broken off


@pytest.fixture
def course(empty: SmallClass, tmp_path: Path) -> SmallClass:
    made = empty.copy(tmp_path / "course")
    for number in range(3):
        made.submit(f"student-{number}", notebook(hand_in(WRONG if number == 1 else None)))
    return made


def test_a_run_that_is_broken_off_goes_on_where_it_was(course: SmallClass, worker: Workers) -> None:
    def stop(progress: Progress, outcome: Outcome | None) -> None:
        if outcome is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        course.mark(worker, report=stop)
    secret = (course.root / ".xinfer-lab" / f"{LAB}.json").read_text(encoding="utf-8")
    (first,) = [p.parent.parent.name for p in (course.root / "autograded").glob("*/*/lab.ipynb")]
    path = course.root / "autograded" / first / LAB / "lab.ipynb"
    untouched = path.read_bytes()
    seen = []
    progress, outcomes = course.mark(
        worker,
        report=lambda progress, outcome: seen.append(
            (course.root / ".xinfer-lab" / f"{LAB}.json").read_text(encoding="utf-8")
        ),
    )
    assert progress == Progress(kept=1, done=2) and first not in [outcome.student for outcome in outcomes]
    assert path.read_bytes() == untouched
    assert set(seen) == {secret}, "all are asked the same hidden cases"
    assert not (course.root / ".xinfer-lab" / f"{LAB}.json").exists(), "the next class is asked others"
    assert [course.scores(f"student-{number}")["check-double"] for number in range(3)] == [2, 0, 2]


def test_marks_that_were_broken_off_in_the_middle_are_made_again(course: SmallClass, worker: Workers) -> None:
    course.mark(worker)
    path = course.root / "autograded" / "student-0" / LAB / "lab.ipynb"
    half = json.loads(path.read_text(encoding="utf-8"))
    del half["metadata"]["xinfer_lab"]
    path.chmod(0o644)
    path.write_text(json.dumps(half), encoding="utf-8")
    progress, _ = course.mark(worker)
    assert progress == Progress(kept=2, done=1)


def test_again_that_is_broken_off_is_not_forgotten(course: SmallClass, worker: Workers) -> None:
    course.mark(worker)

    def stop(progress: Progress, outcome: Outcome | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        course.mark(worker, again=True, report=stop)
    progress, _ = course.mark(worker)
    assert progress == Progress(done=3)


CRASH = """
import sys
from pathlib import Path
from tests.classes import LAB
from tests.marking import LIMITS
from xinfer_lab.course.autograde import autograde
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.workers import local_workers

def show(progress, outcome):
    if outcome is not None:
        print(outcome.student, flush=True)

if __name__ == "__main__":
    root, package = Path(sys.argv[1]), Path(sys.argv[2])
    with local_workers(2) as workers:
        autograde(CourseBook(root), find_lab(root, LAB), workers, limits=LIMITS, package=package, report=show)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
def test_a_run_that_is_killed_leaves_no_process_and_the_next_goes_on(
    course: SmallClass, worker: Workers, tmp_path: Path
) -> None:
    program = tmp_path / "crash.py"
    program.write_text(CRASH, encoding="utf-8")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    with subprocess.Popen(
        [sys.executable, str(program), str(course.root), str(course.package)],
        stdout=subprocess.PIPE,
        env=env,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
    assert below
    _, alive = psutil.wait_procs(below, timeout=STUCK)
    assert alive == []
    progress, outcomes = course.mark(worker)
    assert progress.kept + progress.done == 3 and first not in [outcome.student for outcome in outcomes]
    assert [course.scores(f"student-{number}")["check-double"] for number in range(3)] == [2, 0, 2]


def test_two_runs_at_a_time_are_refused(course: SmallClass, worker: Workers) -> None:
    with holding(course.root, []) as process, pytest.raises(Busy, match=f"process {process.pid} on .* is marking"):
        course.mark(worker)
    assert course.mark(worker)[0].done == 3, "a lock of a process that is gone counts for nothing"


@pytest.mark.bubblewrap
@pytest.mark.skipif(not BUBBLEWRAP, reason="there is no bubblewrap")
def test_a_run_in_another_container_is_seen(course: SmallClass, worker: Workers) -> None:
    apart = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--unshare-uts", "--hostname", "elsewhere"]
    busy = r"process \d+ on elsewhere is marking lab9-small"
    with holding(course.root, [*apart, "--die-with-parent", "--"]), pytest.raises(Busy, match=busy):
        course.mark(worker)
    assert course.mark(worker)[0].done == 3


HOLD = """
import sys
from pathlib import Path
from xinfer_lab.course.lock import only_one

with only_one(Path(sys.argv[1]), "marking lab9-small"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(root: Path, apart: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Within the block a process, started by the command ``apart``, holds the lock; then it is killed."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [*apart, sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
            process.stdout.read()  # until what it started is gone too, which holds the lock
            process.wait()


# ------------------------------------------------------------------------------------------------------- not marked


def ends_its_worker(job: Job) -> Marked:
    if job.student == "student-1":
        os._exit(1)
    return mark_job(job)


def breaks(job: Job) -> Marked:
    raise RuntimeError("the machine that marks is out of order")


@pytest.mark.slow
def test_who_takes_every_worker_along_is_reported_and_nobody_else_suffers(
    course: SmallClass, worker: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.mark(worker)
    with monkeypatch.context() as changed, local_workers(1) as workers:
        changed.setattr(running, "mark_job", ends_its_worker)
        progress, outcomes = course.mark(workers, students=("student-0", "student-1"), again=True)
    assert progress == Progress(done=1, failed=1)
    assert [outcome.trouble for outcome in outcomes if outcome.trouble] == ["the process that marked it ended 3 times"]
    assert {score or 0 for score in course.scores("student-1").values()} == {0}, "no earlier score is kept"
    assert "ended 3 times" in said(course.marked("student-1"), "check-double")
    assert course.statuses("student-1")["double"] == "not marked"
    assert course.scores("student-0") == FULL
    assert course.mark(worker)[0] == Progress(kept=2, done=1)
    assert course.scores("student-1") == {**FULL, "check-double": 0}


def test_where_marking_fails_for_everybody_no_mark_is_touched(
    course: SmallClass, worker: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.mark(worker)
    before = [course.scores(f"student-{number}") for number in range(3)]
    monkeypatch.setattr(running, "mark_job", breaks)
    with pytest.raises(ClassError, match="no marks were changed: RuntimeError: the machine that marks is out of order"):
        course.mark(worker, again=True)
    assert [course.scores(f"student-{number}") for number in range(3)] == before


def test_a_submission_that_is_corrupted_meanwhile_costs_nobody_else(course: SmallClass, worker: Workers) -> None:
    def corrupt(progress: Progress, outcome: Outcome | None) -> None:
        if outcome is not None and outcome.student == "student-0":
            course.submit("student-2", "{")

    assert course.mark(worker, report=corrupt)[0] == Progress(done=2, failed=1)
    assert course.scores("student-0") == FULL and course.scores("student-1") == {**FULL, "check-double": 0}
    assert {score or 0 for score in course.scores("student-2").values()} == {0}


def test_marks_that_cannot_be_stored_are_reported_and_cost_nobody_else(
    course: SmallClass, worker: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.compose

    def compose(lab: Lab, marked: Marked) -> NotebookNode:
        if any(verdict.status is Status.FAILED for verdict in marked.marking.verdicts):
            raise FileNotFoundError("no such thing")
        return real(lab, marked)

    monkeypatch.setattr(store, "compose", compose)
    progress, outcomes = course.mark(worker)
    assert progress == Progress(done=2, failed=1)
    (trouble,) = [outcome.trouble for outcome in outcomes if outcome.trouble]
    assert trouble.startswith("its marks could not be stored: FileNotFoundError")
    assert course.scores("student-0") == course.scores("student-2") == FULL


@pytest.mark.skipif(sys.platform == "win32", reason="a link may need rights there")
def test_a_link_in_a_submission_is_not_followed_and_costs_nothing(course: SmallClass, worker: Workers) -> None:
    folder = course.root / "submitted" / "student-0" / LAB
    (folder / "data.bin").symlink_to("nowhere")
    (folder / "secrets").symlink_to(course.root / "gradebook.db")
    (folder / "lab.ipynb").rename(folder / "mine.ipynb")
    (folder / "lab.ipynb").symlink_to(course.root / "solutions" / LAB / "lab.ipynb")
    assert course.mark(worker)[0] == Progress(done=3)
    assert course.scores("student-0") == FULL
    assert sorted(path.name for path in (course.root / "autograded" / "student-0" / LAB).iterdir()) == ["lab.ipynb"]
    assert "lab.ipynb is a link" in " ".join(course.marks("student-0").notes)


def test_who_hands_in_again_is_marked_again_and_old_scores_are_gone(course: SmallClass, worker: Workers) -> None:
    course.mark(worker)
    course.submit("student-0", notebook(hand_in(WRONG)))
    course.submit("student-2", "{")
    progress, outcomes = course.mark(worker)
    assert progress == Progress(kept=1, done=1, failed=1)
    assert {outcome.student for outcome in outcomes} == {"student-0", "student-2"}
    assert course.scores("student-0") == {**FULL, "check-double": 0}
    assert {score or 0 for score in course.scores("student-2").values()} == {0}
    course.submit("student-2", notebook(hand_in()))
    course.mark(worker)
    assert course.scores("student-2") == FULL


# ---------------------------------------------------------------------------------------------------- the gradebook


def test_a_lab_that_the_gradebook_does_not_know_is_made_known(course: SmallClass, worker: Workers) -> None:
    assert course.mark(worker)[0].done == 3
    (course.root / "gradebook.db").unlink()
    assert course.mark(worker)[0].done == 3, "what a lost gradebook had is marked again, not called marked"
    assert course.scores("student-0") == FULL


def test_labs_that_are_not_what_solutions_give_are_refused(course: SmallClass, worker: Workers) -> None:
    path = course.root / "labs" / LAB / "lab.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("import math", "import cmath"), encoding="utf-8")
    with pytest.raises(GradebookError, match="release it first"):
        course.mark(worker)


def test_points_and_comments_that_a_person_gave_stay(course: SmallClass, worker: Workers) -> None:
    course.mark(worker)
    with course.book().gradebook() as book:
        book.find_grade("written", "lab", LAB, "student-0").manual_score = 2.5
        book.find_comment("double", "lab", LAB, "student-0").manual_comment = "well done"
        book.db.commit()
    course.mark(worker, students=("student-0",), again=True)
    with course.book().gradebook() as book:
        assert book.find_grade("written", "lab", LAB, "student-0").manual_score == 2.5
        assert book.find_comment("double", "lab", LAB, "student-0").comment == "well done"


def test_without_isolation_it_is_said_with_every_mark_and_isolation_is_caught_up(
    course: SmallClass, worker: Workers
) -> None:
    course.mark(worker, students=("student-0",), sandbox=BARE)
    assert not course.marks("student-0").isolated and course.marks("student-0").sandbox.startswith("NOT isolated")
    if BUBBLEWRAP:
        assert course.mark(worker, students=("student-0",), sandbox="bubblewrap")[0].done == 1
        assert course.marks("student-0").isolated


# ---------------------------------------------------------------------------------------------------------- workers


def pid(_: object = None) -> int:
    return os.getpid()


def die() -> None:
    os._exit(1)


def hold(port: int) -> str:
    """Blocks until the test lets go."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        return line.recv(10).decode()


@pytest.mark.slow
def test_a_worker_that_dies_takes_no_other_job_along_and_is_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, local_workers(2) as workers:
        assert workers.capacity() == 2
        held = workers.executor.submit(hold, server.getsockname()[1])
        line, _ = server.accept()
        assert isinstance(workers.executor.submit(die).exception(), workers.lost)
        assert psutil.pid_exists(workers.executor.submit(pid).result())
        line.sendall(b"go on")
        line.close()
        assert held.result() == "go on"


def test_workers_end_with_the_block_even_in_the_middle_of_a_job() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(ZeroDivisionError), local_workers(1) as workers:
            process = psutil.Process(workers.executor.submit(pid).result())
            workers.executor.submit(hold, server.getsockname()[1])
            line, _ = server.accept()
            raise ZeroDivisionError
        assert psutil.wait_procs([process], timeout=STUCK)[1] == []
        line.close()


def test_no_more_jobs_at_once_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "cores", lambda: 8)
    monkeypatch.setattr(workers_module.psutil, "virtual_memory", lambda: SimpleNamespace(total=9 * 2**30))
    with local_workers(None) as made:
        assert made.capacity() == 2 and "memory for no more (of 8 cores" in made.words
    with local_workers(5) as made:
        assert made.capacity() == 5
