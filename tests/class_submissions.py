"""A class of made-up students: what each hands in and how it has to come out, from the bank, the same each time."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.answer_bank import CHECK, SOURCES, Answer, answers, defines
from tests.notebooks import Cell, Notebook, mark, read, submission, text

LAB = "lab1"
SOURCE = SOURCES[LAB]
ASSIGNMENT, NAME = SOURCE.parent.name, SOURCE.name
GATE = "check-gate"
COPY = "residency (1).ipynb"

LOST = frozenset({"failed", "timed out", "kernel died", "missing"})
NOTHING = {"*": LOST}
"""Every check is lost."""

UNREAD = frozenset({"not marked"})
"""What becomes of each check where there is nothing to mark: it needs the instructor's attention."""


@dataclass(frozen=True)
class Submission:
    """What ``student`` hands in, by file name. ``lost`` are the checks that must earn nothing, with the statuses that
    they may have; all others must pass, but for ``perhaps``. ``note`` has to stand in the notes on the notebook.
    """

    student: str
    what: str
    files: Mapping[str, bytes]
    lost: Mapping[str, frozenset[str]] = field(default_factory=dict)
    perhaps: frozenset[str] = frozenset()
    note: str = ""

    @property
    def unreadable(self) -> bool:
        """Whether there is nothing to mark."""
        return self.lost.get("*") == UNREAD

    def faults(self, statuses: Mapping[str, str], notes: tuple[str, ...]) -> list[str]:
        """Where the marking, by grade cell, is not what it has to be."""
        found = []
        for name, status in statuses.items():
            allowed = self.lost.get(name) or (self.lost.get("*") if status != "graded by hand" else None)
            if name in self.perhaps:
                continue
            if allowed is not None and status not in allowed:
                found.append(f"{self.student} ({self.what}): {name} is {status}, not {' or '.join(sorted(allowed))}")
            if allowed is None and status not in ("passed", "graded by hand"):
                found.append(f"{self.student} ({self.what}): {name} is {status}, though it is right")
        if self.note and not any(self.note in note for note in notes):
            found.append(f"{self.student} ({self.what}): no note says {self.note!r}: {notes}")
        return found


def grade_cell_of() -> dict[str, str]:
    """Grade cell by check, without the lab's name."""
    return {
        piece.partition(".")[2]: mark(cell)["grade_id"]
        for cell in read(SOURCE)["cells"]
        if mark(cell).get("grade")
        for piece, _ in CHECK.findall(text(cell))
    }


def filled(*chosen: Answer) -> Notebook:
    """The lab with the instructor's answers, and ``chosen`` in their places."""

    def change(cell: str, answer: str) -> str:
        for other in chosen:
            if defines(answer, other.function):
                return other.path.read_text(encoding="utf-8")
        return answer

    return submission(SOURCE, change)


def _own(after: str, source: str) -> Callable[[list[Cell]], list[Cell]]:
    """Damage: a code cell of the student's own after the cell ``after``."""
    own = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}

    def damage(cells: list[Cell]) -> list[Cell]:
        place = next(i for i, cell in enumerate(cells) if cell["id"] == after)
        return [*cells[: place + 1], {**own, "id": "mine"}, *cells[place + 1 :]]

    return damage


def _without(name: str) -> Callable[[list[Cell]], list[Cell]]:
    return lambda cells: [cell for cell in cells if cell["id"] != name]


def _duplicated(cells: list[Cell]) -> list[Cell]:
    return cells + [copy.deepcopy(cell) for cell in cells if cell["id"] in ("layer-bytes", "check-layer-bytes")]


def _reordered(cells: list[Cell]) -> list[Cell]:
    return [c for c in cells if c["id"] != "kv-cache-bytes"] + [c for c in cells if c["id"] == "kv-cache-bytes"]


def _edited(cells: list[Cell]) -> list[Cell]:
    new = {"check-layer-bytes": "print('lab1.layer_bytes: passed')", "setup": "import json, math\ncheck = print"}
    return [{**cell, "source": new.get(cell["id"], cell["source"])} for cell in cells]


def _split(cells: list[Cell]) -> list[Cell]:
    made = []
    for cell in cells:
        if cell["id"] == "kv-cache-bytes":
            source = text(cell).replace("def kv_cache_bytes", "def kv_of_mine")
            made.append({**cell, "id": "part", "metadata": {}, "source": source})
            tail = "def kv_cache_bytes(*sizes, **named):\n    return kv_of_mine(*sizes, **named)"
            cell = {**cell, "source": tail}
        made.append(cell)
    return made


def _stripped(cells: list[Cell]) -> list[Cell]:
    return [{**cell, "metadata": {}} for cell in cells]


def _colab(cells: list[Cell]) -> list[Cell]:
    made = []
    for cell in cells:
        there = {key: value for key, value in cell.items() if key != "id"}
        made.append({**there, "metadata": {**cell["metadata"], "id": cell["id"], "colab": {"base_uri": "x"}}})
    return made


def _vs_code(cells: list[Cell]) -> list[Cell]:
    return [{**cell, "metadata": {**cell["metadata"], "vscode": {"languageId": "python"}}} for cell in cells]


def _outputs(megabytes: int) -> Callable[[list[Cell]], list[Cell]]:
    def damage(cells: list[Cell]) -> list[Cell]:
        said = {"output_type": "stream", "name": "stdout", "text": "x" * (megabytes * 2**20)}
        return [{**cell, "outputs": [said]} if cell["id"] == "layer-bytes" else cell for cell in cells]

    return damage


FORK = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
MEMORY = "hold = []\nwhile True:\n    hold.append(bytearray(2**27))"
DISK = (
    "import tempfile, pathlib\nfolder = pathlib.Path(tempfile.gettempdir())\nnumber = 0\n"
    "while True:\n    number += 1\n    (folder / f'mine-{number}').write_bytes(bytes(2**24))"
)
ENDLESS = (
    "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    try:\n        while True: pass\n"
    "    except BaseException: pass"
)
SPY = (
    "import pathlib, glob\nfound = [p for top in ('/', '..', '../..', '../../..', str(pathlib.Path.home()))\n"
    "         for p in glob.glob(f'{top}/**/solutions/**/*.ipynb', recursive=True)]\n"
    "found += list(pathlib.Path('/').glob('*/gradebook.db'))\nassert found"
)
HEALTHY: dict[str, Callable[[list[Cell]], list[Cell]]] = {
    "a duplicated answer and check": _duplicated,
    "a deleted check": _without("check-model-bytes"),
    "an answer moved to the end": _reordered,
    "an edited check": _edited,
    "an answer split over two cells": _split,
    "metadata stripped": _stripped,
    "from Colab": _colab,
    "from VS Code": _vs_code,
    "huge outputs": _outputs(20),
    "a cell that kills the kernel": _own("setup", "import os\nos._exit(1)"),
}
"""Damage that takes nothing from the answers."""

BOMBS: dict[str, Callable[[list[Cell]], list[Cell]]] = {
    "a fork bomb": _own("setup", FORK),
    "a memory bomb": _own("setup", MEMORY),
    "a full disk": _own("setup", DISK),
    "an endless loop that ignores interrupts": _own("setup", ENDLESS),
    "looks for the solutions": _own("setup", SPY),
}
"""Damage that takes the machine instead. Without a sandbox these are not to be tried."""

REWRITES = "get_ipython().input_transformers_post.append(lambda lines: [l.replace('check(', 'print(') for l in lines])"
PATCHES: dict[str, str] = {
    "rewrites what follows": REWRITES,
    "replaces the check": "import xinfer_lab.grading as g\ng.check = check = lambda *a, **k: print('passed')",
    "replaces verifying": (
        "import xinfer_lab.grading.verify_values as v\nfrom xinfer_lab.grading.report import Report\n"
        "v.verify_values = lambda piece, *a: Report(piece, True, 'fine')\nReport.passed = True"
    ),
    "replaces torch's comparison": (
        "import sys, types\nsys.modules.setdefault('torch', types.ModuleType('torch')).allclose = lambda *a: True"
    ),
    "opens the gradebook": (
        "import sqlite3, pathlib\nfor path in [*pathlib.Path('/').glob('*/gradebook.db'), 'gradebook.db']:\n"
        "    sqlite3.connect(path).execute('update grade set auto_score = 100')"
    ),
}
"""Cheats by a cell of their own, beside a wrong answer."""


def correct(student: str, draw: random.Random) -> Submission:
    """Right answers in one of the bank's ways for each."""
    by_function: dict[str, list[Answer]] = {}
    for answer in answers("correct"):
        if answer.lab == LAB:
            by_function.setdefault(answer.function, []).append(answer)
    return Submission(student, "correct", _files(filled(*(draw.choice(found) for found in by_function.values()))))


def wrong(student: str, answer: Answer) -> Submission:
    """One wrong answer of the bank, the rest right."""
    lost = {grade_cell_of()[check.partition(".")[2]]: LOST for check in answer.checks}
    return Submission(student, answer.name, _files(filled(answer)), lost)


def cheat(student: str, answer: Answer) -> Submission:
    """One cheat of the bank, the rest right. The gate, made of all pieces, may be lost too."""
    lost = {grade_cell_of()[check.partition(".")[2]]: LOST for check in answer.checks}
    return Submission(student, answer.name, _files(filled(answer)), lost, frozenset({GATE} - lost.keys()))


def patched(student: str, what: str, answer: Answer) -> Submission:
    """A wrong answer, and above it a cell that tries to make it count."""
    notebook = filled(answer)
    notebook["cells"] = _own("setup", PATCHES[what])(notebook["cells"])
    lost = {grade_cell_of()[check.partition(".")[2]]: LOST for check in answer.checks}
    return Submission(student, what, _files(notebook), lost)


def damaged(student: str, what: str) -> Submission:
    """Right answers in a notebook with something the matter with it."""
    notebook = filled()
    notebook["cells"] = {**HEALTHY, **BOMBS}[what](notebook["cells"])
    # What a student hoards is missing where his own reader takes 100 MB, here as in his notebook.
    perhaps = frozenset({"check-refuse-header"}) if what == "a memory bomb" else frozenset[str]()
    return Submission(student, what, _files(notebook), perhaps=perhaps)


def broken(student: str, what: str) -> Submission:
    """Of which there is little or nothing to mark."""
    raw = json.dumps(filled()).encode()
    missing, unread = frozenset({"missing", "failed"}), {"*": UNREAD}
    made: dict[str, Submission] = {
        "a deleted answer": Submission(
            student,
            what,
            _files({**filled(), "cells": _without("layer-table")(filled()["cells"])}),
            {"check-layer-table": missing},
            note="the gap stays empty",
        ),
        "renamed": Submission(student, what, {COPY: raw}, note=f"{COPY} was marked"),
        "no notebook": Submission(student, what, {"readme.txt": b"see you"}, unread, note="is missing"),
        "invalid JSON": Submission(student, what, {NAME: raw[: len(raw) // 2]}, unread, note="not valid JSON"),
        "an empty file": Submission(student, what, {NAME: b""}, unread, note="is empty"),
        "no text": Submission(student, what, {NAME: bytes(range(256)) * 9}, unread, note="not text in UTF-8"),
        "JSON, but no notebook": Submission(student, what, {NAME: b"[1, 2]"}, unread, note="no notebook"),
        "endless brackets": Submission(student, what, {NAME: b"[" * 10**6}, unread, note="not valid JSON"),
        "unfilled": Submission(student, what, {NAME: _released()}, NOTHING),
        "solved beside the released one": Submission(student, what, {NAME: _released(), COPY: raw}, note="Passed over"),
        "solved beside an empty one": Submission(student, what, {NAME: b"", COPY: raw}, note=f"{COPY} was marked"),
        "a time that is none": Submission(
            student, what, {NAME: raw, "timestamp.txt": b"yesterday at noon"}, note="cannot be read as a date"
        ),
    }
    return made[what]


BROKEN = (
    "a deleted answer", "renamed", "no notebook", "invalid JSON", "an empty file", "no text", "JSON, but no notebook",
    "endless brackets", "unfilled", "solved beside the released one", "solved beside an empty one",
    "a time that is none",
)  # fmt: skip


CHOSEN = ("solved beside the released one", "invalid JSON", "a deleted answer")


def sample() -> list[Submission]:
    """A class of twelve, of every sort and none that takes long."""
    draw = random.Random(6)
    cheats = [answer for answer in answers("cheat") if answer.lab == LAB and "endless" not in answer.path.name]
    wrongs = [answer for answer in answers("wrong") if answer.lab == LAB]
    made = [
        lambda student: correct(student, draw),
        *[lambda student, answer=answer: wrong(student, answer) for answer in draw.sample(wrongs, 3)],
        *[lambda student, answer=answer: cheat(student, answer) for answer in draw.sample(cheats, 2)],
        lambda student: patched(student, "replaces verifying", next(one for one in wrongs if len(one.checks) == 1)),
        *[lambda student, what=what: damaged(student, what) for what in ("from Colab", "an edited check")],
        *[lambda student, what=what: broken(student, what) for what in CHOSEN],
    ]
    return [make(f"student-{number:03}") for number, make in enumerate(made, 1)]


def _files(notebook: Notebook) -> dict[str, bytes]:
    return {NAME: json.dumps(notebook).encode()}


def _released() -> bytes:
    return (SOURCE.parents[2] / "labs" / ASSIGNMENT / NAME).read_bytes()


def make_class(students: int, *, bombs: bool) -> Iterator[Submission]:
    """``students`` submissions: of ten, four are correct, three wrong, one or two cheat, one or two are broken.

    ``bombs``: with those that a machine without a sandbox must not run.
    """
    draw = random.Random(20_261_129)
    wrongs = [answer for answer in answers("wrong") if answer.lab == LAB]
    cheats = [answer for answer in answers("cheat") if answer.lab == LAB]
    for found in (wrongs, cheats):
        draw.shuffle(found)
    odd: list[str] = [*BROKEN, *HEALTHY, *(BOMBS if bombs else ())]
    for number in range(students):
        student, round_, kind = f"student-{number + 1:03}", number // 10, number % 10
        if kind < 4:
            yield correct(student, draw)
        elif kind < 7:
            yield wrong(student, wrongs[(3 * round_ + kind - 4) % len(wrongs)])
        elif kind == 7:
            yield cheat(student, cheats[round_ % len(cheats)])
        elif kind == 8 and round_ % 4 == 0:
            what = list(PATCHES)[round_ // 4 % len(PATCHES)]
            yield patched(student, what, next(one for one in wrongs if len(one.checks) == 1))
        else:
            what = odd[(2 * round_ + kind - 8) % len(odd)]
            yield broken(student, what) if what in BROKEN else damaged(student, what)


def hand_in(made: Submission, submitted: Path, assignment: str = ASSIGNMENT) -> None:
    """Put what a student hands in where nbgrader looks for it."""
    folder = submitted / made.student / assignment
    folder.mkdir(parents=True)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
