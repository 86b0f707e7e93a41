"""Formgrader in a real Chromium: nothing of a student's runs on its pages, and a person can grade on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.server import apart, serving
from tests.marking import code, hand_in, notebook, text
from tests.test_course_nbgrader import LAB, Class

pytestmark = pytest.mark.browser

# What the attack did: find this student's grades, and set one of them.
MARK = (
    "window.attacked = 1; fetch('/formgrader/api/grades?submission_id=x').then(r => r.json()).then(all => all.forEach("
    "one => fetch('/formgrader/api/grade/' + one.id, {method: 'PUT', body: JSON.stringify({manual_score: 3})})))"
)
ATTACKS = {
    "script": f"<script>{MARK}</script>",
    "handler": f'<img src=x onerror="{MARK}">',
    "handler of details": f'<details open ontoggle="{MARK}"><summary>x</summary></details>',
    "svg": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{MARK}"><set attributeName=x onbegin="{MARK}"/></svg>',
    "javascript link": f'<a id=link href="javascript:{MARK}">a link</a>',
    "MathJax configuration": f'<script type="text/x-mathjax-config">{MARK}</script> $\\href{{javascript:{MARK}}}{{x}}$',
    "style": f'<style>@keyframes x {{}}</style><p style="animation: x 1s" onanimationstart="{MARK}">x</p>',
    "meta refresh": f'<meta http-equiv="refresh" content="0;url=data:text/html,<script>opener.{MARK}</script>">',
    "base": '<base href="https://evil.example/">',
    "form": '<form id=form action="/formgrader/api/grade/1" method=post><button id=send>send</button></form>',
    "iframe": f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    "iframe of data": f"<iframe src=\"data:text/html,<script>parent.{MARK}</script>\"></iframe>",
    "iframe of a file": '<iframe src="evil.html"></iframe>',
    "object": f"<object data=\"data:text/html,<script>parent.{MARK}</script>\"></object><embed src=evil.html>",
    "module": f'<script type="module">{MARK}</script><link rel="modulepreload" href="evil.js">',
    "a file's script": '<script src="evil.js"></script>',
    "another host's script": '<script src="https://evil.example/x.js"></script>',
    "nonce that is guessed": f'<script nonce="{{{{ csp_nonce() }}}}">{MARK}</script>',
}  # fmt: skip


@dataclass(frozen=True)
class Grading:
    """A class whose notebooks attack, in Formgrader."""

    marked: Class
    origin: str

    def open(self, page: Page, student: str) -> None:
        """A student's notebook, as a person grades it."""
        page.request.get(f"{self.origin}/lab?token=tests")  # nbgrader's own pages keep no login
        page.goto(f"{self.origin}/formgrader/submissions/{self.submission(student)}/")

    def submission(self, student: str) -> str:
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.marked.root / 'gradebook.db'}") as book:
            return str(book.find_submission_notebook("lab", LAB, student).id)

    def manual(self, student: str) -> set[float | None]:
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.marked.root / 'gradebook.db'}") as book:
            return {grade.manual_score for grade in book.find_submission_notebook("lab", LAB, student).grades}


def attacking() -> list[dict]:
    """Every attack in a written answer, cells of one's own, outputs, metadata, ids and attachments."""
    everything = "\n\n".join(ATTACKS.values())
    listed = hand_in({"written": everything, "title": everything}, own={"setup": f"print({everything!r})"})
    for number, attack in enumerate(ATTACKS.values()):
        listed.append(text(f"own-{number}", attack))
        listed.append({"cell_type": "raw", "id": f"raw-{number}", "metadata": {}, "source": attack})
    shown = {"output_type": "display_data", "metadata": {}, "data": {"text/html": everything}}
    listed.append(code("<img src=x onerror=attacked=1>", "raise ValueError('<script>attacked = 1</script>')"))
    for cell in listed:
        cell["metadata"] = {**cell["metadata"], "raw_mimetype": "text/html", "name": everything, "tags": [everything]}
        if cell["cell_type"] == "code":
            cell["outputs"] = [shown]
        else:
            svg = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{MARK}"/>'
            cell["attachments"] = {'x" onerror="attacked=1': {"image/svg+xml": svg, "text/html": everything}}
    return listed


def uncleaned(marked: Class, student: str) -> None:
    """Put the attacks into a marked notebook, past the entry: as text, and as outputs, which nobody sanitises."""
    path = marked.root / "autograded" / student / LAB / "lab.ipynb"
    content = json.loads(path.read_text(encoding="utf-8"))
    for number, attack in enumerate(ATTACKS.values()):
        html = {"output_type": "display_data", "metadata": {}, "data": {"text/html": attack}}
        content["cells"].append(text(f"text-{number}", attack))
        content["cells"].append({**code(f"output-{number}", "1"), "outputs": [html]})
    path.chmod(0o644)
    path.write_text(json.dumps(content), encoding="utf-8")
    (path.parent / "evil.html").write_text(f"<script>parent.{MARK}</script>", encoding="utf-8")
    (path.parent / "evil.js").write_text(MARK, encoding="utf-8")


@pytest.fixture(scope="module")
def grading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grading]:
    marked = Class(tmp_path_factory.mktemp("formgrader"))
    for student in ("attacks", "uncleaned", "right"):
        listed = attacking() if student == "attacks" else hand_in()
        marked.submit(student, notebook(copy.deepcopy(listed)))
    for name in ("evil.html", "evil.js"):
        (marked.root / "submitted" / "attacks" / LAB / name).write_text(MARK, encoding="utf-8")
    marked.nbgrader("autograde", LAB)
    uncleaned(marked, "uncleaned")
    environment = apart(marked.root / "home") | {"PYTHONPATH": str(marked.package.parent)}
    with serving(marked.root, environment, str(marked.root)) as origin:
        yield Grading(marked, origin)


@pytest.mark.parametrize("student", ["attacks", "uncleaned"])
def test_nothing_of_a_students_runs_or_is_asked_for(
    grading: Grading, watch: Open, student: str, artefacts: Path
) -> None:
    watched = watch(grading.origin)
    page, asked = watched.page, []
    page.on("request", lambda request: asked.append((request.method, request.url)))
    grading.open(page, student)
    expect(page.locator("#notebook").first).to_contain_text("check-triple")
    page.wait_for_load_state("networkidle")
    for link in page.locator("a", has_text="a link").all():
        link.click(no_wait_after=True)
    for button in page.locator("#send").all():
        button.click(no_wait_after=True)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=artefacts / f"formgrader-{student}.png")
    assert page.url.startswith(f"{grading.origin}/formgrader/submissions/")
    assert page.evaluate("window.attacked") is None
    assert {method for method, _ in asked} == {"GET"} and watched.foreign == []
    assert grading.manual(student) == grading.manual("right") == {None}
    if student == "attacks":
        assert not [url for _, url in asked if "evil" in url]
        assert watched.complaints == [], "cleaned on entry: nothing is left that the policy has to refuse"
        assert sorted(path.name for path in (grading.marked.root / "autograded/attacks" / LAB).iterdir()) == [
            "lab.ipynb"
        ]
    page.close()


def test_a_file_beside_a_notebook_is_a_strangers_page(grading: Grading, watch: Open) -> None:
    page = watch(grading.origin).page
    grading.open(page, "right")
    found = page.goto(f"{grading.origin}/formgrader/submissions/{grading.submission('uncleaned')}/evil.html")
    assert found is not None and "sandbox" in found.headers["content-security-policy"]
    assert page.evaluate("window.attacked") is None and page.evaluate("window.origin") == "null"
    page.close()


def test_a_person_can_grade_there(grading: Grading, watch: Open) -> None:
    watched = watch(grading.origin)
    page = watched.page
    grading.open(page, "right")
    page.wait_for_load_state("networkidle")  # a score typed before its grade has come is not saved
    score = page.locator("input.score").last
    with page.expect_response(lambda response: response.request.method == "PUT") as saved:
        score.fill("2")
        score.press("Tab")
    assert saved.value.ok
    page.locator(".glyphicon-eye-open").click()
    expect(page.locator(".name-shown").first).to_be_visible()
    for path, words in (("", "lab9-small"), ("/gradebook", "lab9-small"), (f"/gradebook/{LAB}/lab", "Submission #1")):
        page.goto(f"{grading.origin}/formgrader{path}")
        expect(page.locator("#main-table")).to_contain_text(words)
    page.goto(f"{grading.origin}/formgrader/manage_submissions/{LAB}")
    expect(page.locator("#main-table")).to_contain_text("uncleaned")
    assert (watched.complaints, watched.foreign) == ([], [])
    assert grading.manual("right") == {None, 2.0}
    page.close()
