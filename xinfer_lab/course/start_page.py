"""The start page of `make lab`: the labs in order, with your progress. Plain HTML, complete in itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from xinfer_lab.course.grade_cells import BadGradeCell, grade_cells
from xinfer_lab.course.moving_slots import moving_slots
from xinfer_lab.course.notebook import Cell, UnreadableNotebook, read_notebook
from xinfer_lab.engine.parts import Found
from xinfer_lab.engine.picture import WORDS, summary

__all__ = ["LabProgress", "Task", "labs_in", "render"]

_HEADING = re.compile(r"^(#{1,2}) +(.+?)(?: *\([^()]*minutes[^()]*\))? *$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Task:
    """A section of a lab: its heading, and for each of its pieces the points and what its check said last.

    None: it was not asked yet. A piece that the instructor reads has no check and stays None: ``by_hand``.
    """

    heading: str
    points: tuple[float, ...]
    outcomes: tuple[bool | None, ...]
    by_hand: bool = False

    @property
    def passed(self) -> float:
        """Points whose checks passed."""
        return sum(points for points, outcome in zip(self.points, self.outcomes, strict=True) if outcome)

    @property
    def state(self) -> str:
        """In words."""
        if self.by_hand:
            return "read by your instructor"
        if all(self.outcomes):
            return "passed"
        if any(outcome is not None for outcome in self.outcomes):
            return "begun"
        return "not tried yet"


@dataclass(frozen=True, slots=True)
class LabProgress:
    """A notebook: its path below the labs' folder, with slashes, its title, its graded sections in order, and what its
    first cell says: what it is about, and the ``time`` that it takes ('' where it does not say)."""

    path: str
    title: str
    tasks: tuple[Task, ...]
    about: str = ""
    time: str = ""

    @property
    def points(self) -> float:
        """Points that checks can give."""
        return sum(sum(task.points) for task in self.tasks if not task.by_hand)

    @property
    def by_hand(self) -> float:
        """Points that the instructor gives."""
        return sum(sum(task.points) for task in self.tasks if task.by_hand)

    @property
    def passed(self) -> float:
        """Points whose checks passed."""
        return sum(task.passed for task in self.tasks)

    @property
    def next(self) -> Task | None:
        """The first section that is not passed."""
        return next((task for task in self.tasks if task.state not in ("passed", "read by your instructor")), None)


def labs_in(folder: Path, outcomes: Mapping[str, bool]) -> list[LabProgress]:
    """Every notebook in the folders of ``folder``, in order of their names; one that cannot be read is left out."""
    found = []
    for path in sorted(folder.glob("*/*.ipynb")):
        try:
            cells = read_notebook(path).cells
        except UnreadableNotebook:
            continue
        tasks = tuple(_tasks(cells, outcomes))
        if tasks:
            name, first = path.relative_to(folder).as_posix(), cells[0].source
            found.append(LabProgress(name, _title(cells) or path.stem, tasks, _about(first), _time(first)))
    return found


def _about(first: str) -> str:
    """The first two sentences below the title."""
    paragraphs = [part for part in first.split("\n\n") if part.strip()]
    words = " ".join(paragraphs[1].split()) if len(paragraphs) > 1 else ""
    words = " ".join(re.split(r"(?<=[.?!]) ", words)[:2])
    return "" if words.startswith(("*", "#", "-")) else re.sub(r"[*`]", "", words)


def _time(first: str) -> str:
    """``about two hours``, as the first cell has it."""
    found = re.search(r"\*\*Time\*\* ([^:;,.\n]+)", first)
    return found[1].strip() if found else ""


def _headings(cell: Cell) -> list[tuple[str, str]]:
    """(marks, words) of each heading of the first two levels."""
    return _HEADING.findall(_FENCE.sub("", cell.source)) if cell.kind == "markdown" else []


def _title(cells: tuple[Cell, ...]) -> str:
    return next((words for cell in cells for marks, words in _headings(cell) if marks == "#"), "")


def _tasks(cells: tuple[Cell, ...], outcomes: Mapping[str, bool]) -> Iterator[Task]:
    heading, points, said = "", list[float](), list[bool | None]()
    for cell in cells:
        for marks, words in _headings(cell):
            if marks == "##":
                if points:
                    yield Task(heading, tuple(points), tuple(said))
                heading, points, said = words, [], []
        try:
            graded = grade_cells([cell])
        except BadGradeCell:  # a student changed it; nbgrader's Validate says so
            continue
        for grade in graded:
            if grade.by_hand:
                yield Task(heading, (grade.points,), (None,), by_hand=True)
            else:
                points.append(grade.points)
                said.append(_outcome([check.piece for check in grade.checks], outcomes))
    if points:
        yield Task(heading, tuple(points), tuple(said))


def _outcome(pieces: list[str], outcomes: Mapping[str, bool]) -> bool | None:
    known = [outcomes[piece] for piece in pieces if piece in outcomes]
    return all(known) if len(known) == len(pieces) else (None if not known else False)


# ----------------------------------------------------------------------------------------------------------- the page

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f5f6f8;--ink:#1b1f24;--muted:#57606a;--rule:#d0d7de;--bar:#0072b2}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--card:#1b2027;--ink:#eef2f6;--muted:#a3adb8;--rule:#323a44;
--bar:#56b4e9}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,
'DejaVu Sans',sans-serif}
main{max-width:54rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .5rem}
h2{font-size:1.15rem;margin:0}
p{margin:.4rem 0}
a{color:var(--bar)}
article{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:1rem 1.25rem;margin:1rem 0}
article header{display:flex;flex-wrap:wrap;gap:.25rem 1rem;justify-content:space-between;align-items:baseline}
.bar{height:.6rem;border-radius:.3rem;background:var(--rule);margin:.6rem 0;overflow:hidden}
.bar span{display:block;height:100%;background:var(--bar)}
.muted{color:var(--muted)}
code{background:var(--rule);border-radius:4px;padding:.1rem .3rem;overflow-wrap:anywhere}
figure{margin:1.2rem 0}
figcaption{color:var(--muted)}
table{border-collapse:collapse;width:100%;margin:.5rem 0 0}
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-top:1px solid var(--rule);vertical-align:top}
th{font-weight:600}
.parts{width:auto}
.parts th{white-space:nowrap}
.parts td:not(:first-child){white-space:normal}
td:not(:first-child),th:not(:first-child){white-space:nowrap}
"""

# Back from JupyterLab's tab, the page is what it was when it was left.
_SCRIPT = "addEventListener('visibilitychange',()=>{if(document.visibilityState==='visible')location.reload()})"


def render(labs: list[LabProgress], *, base_url: str, parts: Mapping[str, Found] | None = None) -> str:
    """The page. ``base_url`` is the server's, with a slash at both ends; links lead to JupyterLab. ``parts`` are those
    of the student's engine."""
    articles = "".join(_article(lab, base_url, _parts_of(lab, parts or {})) for lab in labs)
    if not labs:
        articles = "<p>There is no lab in this folder.</p>"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>xinfer-lab: the labs</title><style>{_STYLE}</style></head><body><main>"
        "<h1>Run a language model that is larger than your GPU's memory</h1>"
        "<p>Its layers wait in ordinary RAM and stream through a few slots on the GPU, and the result stays the same, "
        "byte for byte. You build that machine here, piece by piece. Measured on a real GPU, a 65&nbsp;GB model runs "
        "within 24&nbsp;GiB, 20.9 times faster than by copying each layer when it is needed.</p>"
        f"{moving_slots()}"
        f"{_whole(labs)}"
        f"{articles}"
        f"{_engine(parts) if parts else ''}"
        '<p class="muted">Points are those whose checks passed the last time that you ran them here. Your work is '
        "marked again when you hand it in, and your instructor reads written answers.</p>"
        '<p class="muted">Each lab opens in a tab of its own; Ctrl+B (on a Mac, Command+B) shows the list of files '
        "beside it.</p>"
        f'<p><a href="{escape(base_url)}lab" target="jupyterlab">JupyterLab with all files</a></p>'
        f"</main><script>{_SCRIPT}</script></body></html>"
    )


def _whole(labs: list[LabProgress]) -> str:
    """Where to go on, and how far it is."""
    passed, points = sum(lab.passed for lab in labs), sum(lab.points for lab in labs)
    begun = [lab for lab in labs if lab.next is not None]
    if not labs:
        return ""
    then = f"Next: {escape(begun[0].title)}." if begun else "You have passed every check."
    return (
        f"<p><strong>{passed:g} of {points:g} points.</strong> {then} Go through the labs in order. If you get stuck, "
        "move on: each lab starts from working parts.</p>"
    )


def _engine(parts: Mapping[str, Found]) -> str:
    rows = "".join(
        f"<tr><td>{escape(found.part.name)}</td><td>Lab {escape(found.lab.removeprefix('lab'))}</td>"
        f"<td>{escape(WORDS[found.status])}</td></tr>"
        for found in parts.values()
    )
    return (
        f"<article><header><h2>Your engine</h2></header><p>{escape(summary(parts))} When a check passes, its part "
        "is kept in the folder my_engine. Run it with <code>xinfer-lab generate shakespeare --engine my_engine "
        "--prompt ROMEO.</code></p><details><summary>Each part</summary><table><thead><tr>"
        '<th scope="col">part</th><th scope="col">from</th><th scope="col">whose</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></details></article>"
    )


def _parts_of(lab: LabProgress, parts: Mapping[str, Found]) -> str:
    """Which parts that this lab builds are the student's, and which are lent, as a table."""
    name = re.match(r"lab\d+", lab.path)
    here = [found for found in parts.values() if name is not None and found.lab == name[0]]
    rows = "".join(
        f'<tr><th scope="row">{words}</th><td>{", ".join(escape(found.part.name) for found in those)}</td></tr>'
        for words, those in (
            ("your parts", [found for found in here if found.is_used]),
            ("lent parts", [found for found in here if not found.is_used]),
        )
        if those
    )
    return f'<table class="parts" aria-label="Parts of your engine"><tbody>{rows}</tbody></table>' if rows else ""


def _article(lab: LabProgress, base_url: str, parts: str = "") -> str:
    workspace = _workspace(lab.path)
    link = escape(f"{base_url}doc/workspaces/{workspace}/tree/{quote(lab.path)}")
    passed, points = f"{lab.passed:g}", f"{lab.points:g}"
    written = f", and {lab.by_hand:g} graded by your instructor" if lab.by_hand else ""
    time = f"; {escape(lab.time)}" if lab.time else ""
    share = 100 * lab.passed / lab.points if lab.points else 0.0
    if lab.next is None:
        word, then = "Look again", "All checks passed."
    elif any(outcome is not None for task in lab.tasks for outcome in task.outcomes):
        word, then = "Go on", f"Next: {escape(lab.next.heading)}"
    else:
        word, then = "Begin", "Not begun yet."
    rows = "".join(
        f"<tr><td>{escape(task.heading)}</td><td>{task.state}</td>"
        f"<td>{'' if task.by_hand else f'{task.passed:g} of '}{sum(task.points):g}</td></tr>"
        for task in lab.tasks
    )
    return (
        f"<article><header><h2>{escape(lab.title)}</h2>"
        f'<a href="{link}" target="{workspace}" aria-label="{word}: {escape(lab.title)}">{word}</a></header>'
        f'<div class="bar" role="progressbar" aria-label="{escape(lab.title)}: points" aria-valuemin="0" '
        f'aria-valuemax="{points}" aria-valuenow="{passed}"><span style="width:{share:.1f}%"></span></div>'
        f"<p>{escape(lab.about)}</p>"
        f'<p class="muted">{passed} of {points} points{written}{time}. {then}</p>'
        f"{parts}"
        "<details><summary>Each section</summary><table><thead><tr>"
        '<th scope="col">section</th><th scope="col">state</th><th scope="col">points</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></details></article>"
    )


def _workspace(path: str) -> str:
    """A lab's own workspace: the notebook alone, with the whole window's width, and no other lab beside it."""
    return re.sub(r"[^A-Za-z0-9]+", "-", path.rpartition("/")[0]).strip("-") or "lab"
