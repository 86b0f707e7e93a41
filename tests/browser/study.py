"""A student at work: opens a lab in JupyterLab, answers wrongly, then rightly, turns a knob, and validates."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.answer_bank import CHECK, Answer, answers, defines
from tests.browser.server import PATIENCE, Course
from tests.notebooks import Cell, mark, read, released, submission, text

__all__ = ["Study", "study"]

CONTROL = ".xinfer-explorer :is(input, select)"
SLIDER = ".xinfer-explorer input[type=range], .noUi-handle[role=slider]"


@dataclass
class Study:
    """What was seen. ``check_failed`` and ``check_passed`` are the check's words under a wrong and a right answer,
    ``pictures`` the explored picture's words before and after a key was
    pressed on a slider, ``unnamed`` the controls without a label, ``served`` the status of another
    request while Validate ran, ``validated`` its dialog's words."""

    answer: Answer
    notebook: Path
    check_failed: str = ""
    check_passed: str = ""
    errors_left: list[str] = field(default_factory=list)
    pictures: tuple[str, str] = ("", "")
    unnamed: list[str] = field(default_factory=list)
    served: int = 0
    still_validating: str = ""
    validated: str = ""


def wrong_answer(source: Path) -> Answer:
    """A wrong answer of the bank to the lab's first piece that the bank knows, which the check below it finds."""
    lab = source.parent.name.partition("-")[0]
    known = [answer for answer in answers("wrong") if answer.lab == lab]
    cells = read(released(source))["cells"]
    for place, cell in enumerate(cells):
        if mark(cell).get("solution"):
            for answer in known:
                if defines(text(cell), answer.function) and next_check(cells[place:]) in answer.checks:
                    return answer
    raise AssertionError(f"the bank has no wrong answer for {lab}")


def next_check(cells: list[Cell]) -> str:
    """The piece of the first check in ``cells``."""
    return next((found[1] for cell in cells if (found := CHECK.search(text(cell)))), "")


def program(answer: Answer) -> str:
    """The answer without the bank's header."""
    return answer.path.read_text(encoding="utf-8").split('"""', 2)[2].strip() + "\n"


def study(page: Page, course: Course, source: Path, artefacts: Path) -> Study:
    """Work through the lab whose instructor's notebook is ``source``, answered but for one piece."""
    answer = wrong_answer(source)
    right: dict[str, str] = {}

    def fill(cell: str, solution: str) -> str:
        if not right and defines(solution, answer.function):
            right[cell] = solution
            return program(answer)
        return solution

    notebook = submission(source, fill)
    ((piece, solution),) = right.items()
    path = course.labs / source.parent.name / source.name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    seen = Study(answer, path)
    ids = [cell["id"] for cell in notebook["cells"]]
    code = [cell["id"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lab = source.parent.name.partition("-")[0]

    # A workspace of its own: no notebook of another lab is opened again beside it.
    page.goto(course.url(f"lab/workspaces/{lab}/tree/{source.parent.name}/{source.name}"))
    cells = page.locator(".jp-Notebook .jp-Cell")
    expect(cells).to_have_count(len(ids))

    def cell(id: str) -> Locator:
        return cells.nth(ids.index(id))

    def shot(name: str) -> None:
        # What was scrolled to is painted by the next frame.
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.screenshot(path=artefacts / f"{lab}-{name}.png")

    # What is run before the kernel is there is not run at all.
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
    shot("opened")
    place = ids.index(piece)
    check = next(id for id in ids[place:] if f'check("{lab}.' in text(notebook["cells"][ids.index(id)]))
    choose(page, "Run", "Run All Cells")
    verdict = cell(check).locator(".jp-OutputArea")
    expect(verdict).to_contain_text(re.compile("not yet|passed"))
    # JupyterLab shows the last cell when all have been handed in; only then is there time to look at another.
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
    bring(verdict)
    seen.check_failed = verdict.text_content() or ""
    shot("check-failed")

    editor = cell(piece).locator(".cm-content")
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(solution)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    expect(verdict).to_contain_text("passed")
    bring(verdict)
    seen.check_passed = verdict.text_content() or ""
    shot("check-passed")

    choose(page, "Run", "Run Selected Cell and All Below")
    expect(cell(code[-1]).locator(".jp-InputPrompt")).to_have_text(re.compile(r"^\[\d+\]:?$"))
    errors = page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]')
    seen.errors_left = errors.all_inner_texts()

    explored = cells.filter(has=page.locator(SLIDER)).last
    slider = explored.locator(SLIDER).first
    slider.scroll_into_view_if_needed()
    seen.unnamed = [control.get_attribute("id") or "" for control in page.locator(CONTROL).all() if not named(control)]
    picture = explored.locator("img.xinfer-picture").first
    expect(picture).to_be_visible()
    before = picture.get_attribute("alt") or ""
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("alt", before)
    seen.pictures = (before, picture.get_attribute("alt") or "")
    slider.scroll_into_view_if_needed()
    shot("explored")

    button = page.locator(".validate-button")
    button.click()
    expect(button).to_contain_text("Validating")
    seen.served = page.request.get(f"{course.origin}/api/status").status
    seen.still_validating = button.inner_text()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_be_visible()
    seen.validated = dialog.inner_text()
    shot("validated")
    dialog.get_by_role("button", name="OK").click()
    expect(button).to_contain_text("Validate")
    return seen


def bring(target: Locator) -> None:
    """Scroll to ``target``, again if need be: cells above it grow while they are drawn for the first time."""
    for _ in range(PATIENCE):
        target.scroll_into_view_if_needed()
        try:
            return expect(target).to_be_in_viewport(timeout=1000)
        except AssertionError:
            continue
    expect(target).to_be_in_viewport()


def named(control: Locator) -> bool:
    """Whether a control has a label of its own, in words."""
    return bool(control.evaluate("control => [...control.labels].some(label => label.textContent.trim())"))


def choose(page: Page, menu: str, item: str) -> None:
    """Choose ``item`` of a menu of JupyterLab; the keys for it may stand behind it."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=re.compile(f"^{re.escape(item)}(?! and| As)")).click()


expect.set_options(timeout=PATIENCE * 1000)
