"""The whole path: honest work earns its marks in whatever notebook it comes; a cheat earns nothing by it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.marking import ANSWERS, BARE, BUBBLEWRAP, LIMITS, Course, code, hand_in, mark, said, scores, statuses
from tests.sample import sampled
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.course.verifier_client import Trusted

pytestmark = pytest.mark.process

FULL = {"double": 2, "triple": 3, "choice": 1, "written": None}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("marking"))


@pytest.fixture(scope="module")
def apart(course: Course) -> Iterator[Marker]:
    """A marker as isolated as this machine allows."""
    with course.marker(open_sandbox("auto", hidden=(course.root,))) as marker:
        yield marker


@pytest.fixture(scope="module")
def bare(course: Course) -> Iterator[Marker]:
    """A marker without isolation."""
    with course.marker(open_sandbox(BARE)) as marker:
        yield marker


def test_right_answers_earn_all_points(course: Course, apart: Marker) -> None:
    marking = mark(apart, course.lab(), hand_in())
    assert scores(marking) == FULL
    assert marking.score == marking.points == 6
    assert marking.notes == ()


def test_the_unfilled_notebook_earns_nothing_and_is_told_why_everywhere(course: Course, apart: Marker) -> None:
    marking = apart.mark(course.lab(), course.lab().released)
    assert scores(marking) == {"double": 0, "triple": 0, "choice": 0, "written": None}
    assert "not filled in" in said(marking, "double") and "not filled in" in said(marking, "triple")


def test_a_queue_program_is_marked_by_its_stream(course: Course, apart: Marker) -> None:
    marking = mark(apart, course.lab("lab9-stream"), hand_in(stream=True))
    assert scores(marking) == {**FULL, "streaming": 5}, said(marking, "streaming")


def test_a_wrong_queue_program_loses_its_points_alone_and_shows_the_schedule(course: Course, apart: Marker) -> None:
    right = next(cell["source"] for cell in hand_in(stream=True) if cell["id"] == "streaming")
    wait = "                self._device.copy_queue.wait(self._consumed, step - pool + 1)\n"
    assert wait in right
    marking = mark(
        apart,
        course.lab("lab9-stream"),
        hand_in({"streaming": right.replace(wait, "                pass\n")}, stream=True),
    )
    assert scores(marking) == {**FULL, "streaming": 0}
    report = next(verdict.report for verdict in marking.verdicts if verdict.grade_id == "check-streaming")
    assert report is not None and report.picture is not None and "race" in report.headline.lower()


def test_hidden_cases_are_new_for_each_marker_and_the_same_for_all_that_it_marks(course: Course) -> None:
    with closing(Trusted(course.package)) as trusted:
        visible = [case["inputs"]["items"][0][1] for case in trusted.draw("lab9.double", 0).cases]
    tells = {
        "double": f"def double(n):\n    if n not in {[0, 1, *visible]}:\n        raise ValueError(n)\n    return 2 * n"
    }
    reports = []
    for _ in range(2):
        with course.marker(open_sandbox(BARE)) as marker:
            one, two = (mark(marker, course.lab(), hand_in(tells)) for _ in range(2))
            assert said(one, "double") == said(two, "double")
            reports.append(said(one, "double"))
    assert reports[0] != reports[1]


def test_a_notebook_has_one_budget_of_time_and_what_it_did_not_reach_says_so(course: Course) -> None:
    with course.marker(open_sandbox(BARE), replace(LIMITS, budget=0.0)) as marker:
        marking = mark(marker, course.lab(), hand_in())
    assert statuses(marking) == dict.fromkeys(("double", "triple", "choice"), "timed out") | {
        "written": "graded by hand"
    }
    assert "the time for this notebook was up" in said(marking, "triple")


HOARDS = """
import gc, sys
kept = []
def double(n):
    frame = sys._getframe()
    while frame is not None:
        kept.append(dict(frame.f_locals))
        frame = frame.f_back
    return 2 * n
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an answer is asked in the process of its cells")
def test_no_case_is_left_for_a_later_cell_to_print_and_no_label_is_there_at_all(course: Course) -> None:
    """What a cell prints gets onto the student's page."""
    finds = "[(type(one), one) for one in gc.get_objects() if type(one).__name__ in ('Case', '_Counted')]"
    spy = f"print('found', kept, {finds})"
    labels = {"double": HOARDS.replace("return 2 * n", "raise ValueError([f.get('case') for f in kept])")}
    with course.marker(open_sandbox(BARE)) as marker:
        marking = mark(marker, course.lab(), hand_in({"double": HOARDS}, own={"check-double": spy}))
        told = said(mark(marker, course.lab(), hand_in(labels)), "double")
    assert scores(marking) == FULL
    assert [text for text in marking.printed.values() if "found" in text] == ["found [] []\n"]
    assert "Case(label=''" in told


def test_without_a_sandbox_code_is_no_root_either(course: Course, bare: Marker) -> None:
    told = {"double": "import os\ndef double(n):\n    raise ValueError(os.geteuid() == 0, os.access('.', os.W_OK))"}
    assert f"({BARE == 'as-root'}, True)" in said(mark(bare, course.lab(), hand_in(told)), "double")


# ------------------------------------------------------------ cheats

SPOILS = {
    # What is changed in the cell `double`, which gives wrong numbers; nothing but its points may be lost, and these
    # must be.
    "replaces the check": "import xinfer_lab.grading as g\ng.check = check = lambda *a, **k: print('passed')",
    "replaces the check's module": "import sys\nsys.modules['xinfer_lab.grading.check'].examine = lambda *a, **k: 1",
    "replaces verifying": (
        "import xinfer_lab.grading.verify_values as v\nfrom xinfer_lab.grading.report import Report\n"
        "v.verify_values = lambda piece, *a: Report(piece, True, 'fine')"
    ),
    "makes every report passed": "from xinfer_lab.grading.report import Report\nReport.passed = True",
    "rewrites the tests that follow": (
        "get_ipython().input_transformers_post.append(lambda lines: [l.replace('check(', 'print(') for l in lines])"
    ),
    "prints a score": "print('lab9.double: passed')\nprint(2.0)\n2.0",
    "swallows exceptions": "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)",
    "is equal to everything": "class Equal(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__",
    "replaces torch's comparison": (
        "import sys, types\nsys.modules.setdefault('torch', types.ModuleType('torch')).allclose = lambda *a: True"
    ),
    "writes into the channel": (
        "import os, json\nfor fd in range(3, 30):\n    try:\n"
        "        os.write(fd, json.dumps({'recorded': 3, 'data': {'passed': True}}).encode() + b'\\n')\n"
        "    except OSError:\n        pass"
    ),
    "reads the truth by import": (
        "try:\n    from xinfer_lab.labs.lab9.judge.judges import JUDGES\nexcept ImportError:\n    JUDGES = None"
    ),
}
WRONG = "\ndef double(n):\n    return globals().get('Equal', int)(2 * n + 1)\n"


@pytest.mark.parametrize("cheat", SPOILS)
@pytest.mark.parametrize("where", sampled(["apart", "bare"]))
def test_a_cheat_earns_nothing_and_costs_nothing_else(
    cheat: str, where: str, course: Course, request: pytest.FixtureRequest
) -> None:
    own_triple = {"triple": "def triple(n):\n    return 3 * n"}
    marking = mark(
        request.getfixturevalue(where), course.lab(), hand_in({"double": SPOILS[cheat] + WRONG, **own_triple})
    )
    assert scores(marking) == {**FULL, "double": 0}
    assert "expected" in said(marking, "double")


ENDS = {
    # What `double` does when it is asked, and how that comes out.
    "leaves the process": ("import os; os._exit(0)", "kernel died"),
    "leaves Python": ("raise SystemExit", "failed"),
    "kills its process": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "kernel died"),
    "never ends": ("while True: pass", "timed out"),
    "never ends, whatever is raised": (
        "while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "timed out",
    ),
    "computes without end in C": ("return 3 ** (10 ** 9)", "timed out"),
    "fills the memory": ("return len([bytearray(2**28) for _ in range(10**6)])", None),
    "asks for all memory at once": ("return len(bytes(10**13))", "failed"),
    "writes without end": ("import os\n    while True: os.write(9, b'x' * 65536)", None),
}


@pytest.mark.parametrize("cheat", ENDS)
def test_an_answer_that_breaks_its_process_costs_its_own_points(cheat: str, course: Course, apart: Marker) -> None:
    body, status = ENDS[cheat]
    marking = mark(
        apart,
        course.lab(),
        hand_in({"double": f"def double(n):\n    {body}", "triple": "def triple(n):\n    return 3 * n"}),
    )
    assert scores(marking) == {**FULL, "double": 0}
    assert status is None or statuses(marking)["double"] == status, said(marking, "double")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("import os; os._exit(0)", "kernel died"),
        ("exit()", "missing"),
        ("while True: pass", "missing"),
        ("1 / 0", "missing"),
    ],
    ids=["leaves the process", "leaves Python", "never ends", "raises"],
)
def test_a_cell_that_breaks_costs_what_it_defines(body: str, status: str, course: Course, apart: Marker) -> None:
    listed = hand_in(
        {"double": f"{body}\ndef double(n):\n    return 2 * n", "triple": "def triple(n):\n    return 3 * n"}
    )
    marking = mark(apart, course.lab(), listed)
    assert scores(marking) == {**FULL, "double": 0}
    assert statuses(marking)["double"] == status and "the cell double" in said(marking, "double")


@pytest.mark.slow
def test_an_answer_that_waits_for_ever_is_stopped(course: Course, apart: Marker) -> None:
    listed = hand_in(
        {"choice": "import time, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(1e6)\nchoice = 'B'"}
    )
    marking = mark(apart, course.lab(), listed)
    assert scores(marking) == {**FULL, "choice": 0} and statuses(marking)["choice"] == "timed out"


STOLEN = {
    "by import": "from xinfer_lab.residency.streaming import StreamingLayers",
    "by importlib": (
        "import importlib\nStreamingLayers = importlib.import_module('xinfer_lab.residency.streaming').StreamingLayers"
    ),
    "past the finders": (
        "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != 'Denied']\n"
        "from xinfer_lab.residency.streaming import StreamingLayers"
    ),
    "out of what is loaded": (
        "import sys\nStreamingLayers = next(vars(m)['StreamingLayers'] for m in list(sys.modules.values())\n"
        "                       if 'StreamingLayers' in getattr(m, '__dict__', {}) and m.__name__ != '__main__')"
    ),
    "out of all objects": (
        "import gc\n"
        "StreamingLayers = next(o for o in gc.get_objects() if isinstance(o, type) and o.__name__ == 'StreamingLayers')"
    ),
    "out of the frames": (
        "import sys\nframe = sys._getframe()\nwhile 'StreamingLayers' not in frame.f_globals: frame = frame.f_back\n"
        "StreamingLayers = frame.f_globals['StreamingLayers']"
    ),
    "from the package's file": (
        "import xinfer_lab, pathlib\n"
        "source = (pathlib.Path(xinfer_lab.__path__[0]) / 'residency' / 'streaming.py').read_text()\n"
        "names = {'__name__': 'mine'}\nexec(source, names)\nStreamingLayers = names['StreamingLayers']"
    ),
}


@pytest.mark.parametrize("way", sampled(STOLEN))
def test_the_packages_own_answer_cannot_be_had(
    way: str, course: Course, bare: Marker, request: pytest.FixtureRequest
) -> None:
    marker = request.getfixturevalue("apart") if BUBBLEWRAP else bare
    stolen = STOLEN[way] + "\nclass Streaming(StreamingLayers):\n    pass"
    marking = mark(marker, course.lab("lab9-stream"), hand_in({"streaming": stolen}, stream=True))
    assert scores(marking) == {**FULL, "streaming": 0}, way


@pytest.mark.parametrize(
    "way", sampled(["from the package's file", "by import", "past the finders", "out of all objects"])
)
def test_nor_without_a_sandbox(way: str, course: Course, bare: Marker) -> None:
    marking = mark(
        bare,
        course.lab("lab9-stream"),
        hand_in({"streaming": STOLEN[way] + "\nStreaming = StreamingLayers"}, stream=True),
    )
    assert scores(marking) == {**FULL, "streaming": 0}


LEAK = """
import glob, json, os, socket, subprocess
found = {{}}
for path in {paths!r}:
    try:
        found[path] = open(path, 'rb').read(40).hex() if os.path.isfile(path) else os.listdir(path)
    except OSError as error:
        found[path] = None
for address in (('127.0.0.1', {port}),):
    try:
        socket.create_connection(address, timeout=2).close()
        found['network'] = True
    except OSError:
        found['network'] = None
for folder in ('/', '/usr', '/etc', '/root', '/home', '/dev', '/xinfer-lab', {package!r}):
    try:
        open(os.path.join(folder, 'mine'), 'w').write('x')
        found['write ' + folder] = True
    except OSError:
        found['write ' + folder] = None
running = [open('/proc/' + p + '/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]
found['processes'] = [words for words in running if 'pytest' in words] or None
print(json.dumps({{name: what for name, what in found.items() if what is not None}}))
"""


@pytest.mark.bubblewrap
def test_nothing_of_the_course_is_in_sight_under_bubblewrap(course: Course, apart: Marker) -> None:
    import socket

    hidden = [
        course.root / "gradebook.db",
        course.root / "solutions",
        course.root / "submitted",
        course.package,
        Path.home() / ".ssh",
    ]
    truth = Path("/xinfer-lab/xinfer_lab/labs/lab9/judge")
    with socket.create_server(("127.0.0.1", 0)) as server:
        paths = [str(path) for path in (*hidden, truth, Path(__file__).parent, Path("/etc/passwd"))]
        snoop = LEAK.format(paths=paths, port=server.getsockname()[1], package=str(course.package))
        marking = mark(apart, course.lab(), hand_in(own={"double": snoop}))
    place = next(i for i, placed in enumerate(marking.notebook.cells) if placed.name.startswith("your own"))
    assert json.loads(marking.printed[place]) == {}
    assert scores(marking) == FULL


@pytest.mark.bubblewrap
def test_the_gradebook_is_out_of_reach_under_bubblewrap(course: Course, apart: Marker) -> None:
    path = course.root / "gradebook.db"
    cheat = (
        f"import sqlite3\nwith sqlite3.connect({str(path)!r}) as book:\n"
        f"    book.execute('update grade set auto_score = 100')\n"
    )
    marking = mark(
        apart, course.lab(), hand_in({"double": cheat + WRONG, "triple": "def triple(n):\n    return 3 * n"})
    )
    assert scores(marking)["double"] == 0
    with sqlite3.connect(path) as book:
        assert book.execute("select auto_score from grade").fetchall() == [(0,)]


@pytest.mark.bubblewrap
def test_a_fork_bomb_under_bubblewrap_costs_its_own_points(course: Course, apart: Marker) -> None:
    bomb = "def double(n):\n    import os\n    while True:\n        try: os.fork()\n        except OSError: pass"
    marking = mark(apart, course.lab(), hand_in({"double": bomb, "triple": "def triple(n):\n    return 3 * n"}))
    assert scores(marking) == {**FULL, "double": 0}
    assert statuses(marking)["double"] in ("kernel died", "timed out")


@pytest.mark.bubblewrap
def test_what_a_process_leaves_running_is_gone(course: Course, apart: Marker) -> None:
    # Other tests on this machine may leave one of their own.
    sleeps = f"import time; time.sleep({98765 + os.getpid()})"
    left = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {sleeps!r}], start_new_session=True)"
    assert scores(mark(apart, course.lab(), hand_in(own={"double": left}))) == FULL
    import psutil

    assert not [p for p in psutil.process_iter(["cmdline"]) if sleeps in (p.info["cmdline"] or ())]


# ------------------------------------------------------------ honest notebooks


def test_helpers_of_ones_own_are_run_where_they_stand(course: Course, apart: Marker) -> None:
    listed = hand_in(
        {"double": "def double(n):\n    return twice(n)"}, own={"setup": "def twice(n):\n    return n + n"}
    )
    assert scores(mark(apart, course.lab(), listed)) == FULL


def test_magics_and_shell_lines_do_no_harm(course: Course, apart: Marker) -> None:
    magics = "%matplotlib inline\n%timeit -n1 -r1 1\n!echo hello\n" + ANSWERS["double"]
    listed = hand_in({"double": magics, "triple": "%%time\n" + ANSWERS["triple"]})
    assert scores(mark(apart, course.lab(), listed)) == FULL


def test_an_import_that_is_refused_costs_nothing_unless_it_is_used(course: Course, apart: Marker) -> None:
    listed = hand_in(
        {
            "double": "from xinfer_lab.grading.judges import judge_of\n" + ANSWERS["double"],
            "choice": "choice = judge_of",
        }
    )
    marking = mark(apart, course.lab(), listed)
    assert scores(marking) == {**FULL, "choice": 0}
    used = mark(apart, course.lab(), hand_in({"choice": "from xinfer_lab.labs.lab9.judge.judges import choice"}))
    assert scores(used) == {**FULL, "choice": 0} and "holds the answer" in said(used, "choice")


def test_a_check_that_was_copied_into_an_answer_changes_nothing(course: Course, apart: Marker) -> None:
    listed = hand_in(
        {
            "double": ANSWERS["double"]
            + '\ncheck("lab9.double", None)\nfrom xinfer_lab.grading import check\ncheck("lab9.double", 0)'
        }
    )
    assert scores(mark(apart, course.lab(), [*listed, code("mine", 'check("lab9.double", None)')])) == FULL
