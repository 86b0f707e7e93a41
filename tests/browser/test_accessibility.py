"""axe-core over what students read: labs as pages with their outputs, the start page, the knobs in JupyterLab."""

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Open, Worked, every_lab
from tests.browser.server import Course
from xinfer_lab.course.pages import page as as_page

pytestmark = pytest.mark.browser
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
every_theme = pytest.mark.parametrize("theme", ["light", "dark"])


def violations(page: Page) -> list[str]:
    """What axe finds, a line a rule with the first places."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{rule['id']}, {len(rule['nodes'])} times: {[node['html'][:120] for node in rule['nodes'][:3]]}"
        for rule in found
    ]


@every_theme
@every_lab
def test_a_lab_as_a_page_can_be_read_by_everybody_and_loads_nothing(
    studied: Callable[[Path], Worked], watch: Open, artefacts: Path, tmp_path: Path, source: Path, theme: str
) -> None:
    notebook = studied(source).seen.notebook
    written = tmp_path / f"{source.stem}.html"
    written.write_text(as_page(notebook, theme=theme), encoding="utf-8")
    watched = watch(tmp_path.as_uri(), color_scheme=theme)
    watched.page.goto(written.as_uri())
    assert violations(watched.page) == []
    assert (watched.complaints, watched.foreign) == ([], [])
    watched.page.screenshot(path=artefacts / f"{source.parent.name}-page-{theme}.png", full_page=True)
    watched.page.set_viewport_size({"width": 800, "height": 1000})
    wide = watched.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 800, f"at 800 pixels the page is {wide} wide"
    watched.page.screenshot(path=artefacts / f"{source.parent.name}-page-{theme}-800.png")
    watched.page.close()


@every_theme
def test_the_start_page_can_be_read_by_everybody_and_shows_progress(
    course: Course, watch: Open, artefacts: Path, theme: str
) -> None:
    kept = course.folder / ".progress"
    kept.mkdir(exist_ok=True)
    # Who studied Lab 1 before, for another test, has nothing left to go on with in it.
    for passed in kept.glob("lab1.*"):
        passed.unlink()
    (kept / "lab1.predict_embedding").write_text("passed", encoding="ascii")
    watched = watch(course.origin, color_scheme=theme)
    page = watched.page
    page.goto(course.url(""))
    assert page.url.startswith(f"{course.origin}/xinfer-lab"), "it is what the server opens with"
    lab1 = page.get_by_role("article").first
    assert lab1.get_by_role("progressbar").get_attribute("aria-valuenow") != "0"
    lab1.get_by_text("Each section").click()
    assert violations(page) == []
    page.screenshot(path=artefacts / f"start-{theme}.png", full_page=True)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Go on: Lab 1: Residency").focus()
        page.keyboard.press("Enter")
    assert "/tree/lab1-residency/residency.ipynb" in opened.value.url
    assert (watched.complaints, watched.foreign) == ([], [])
    opened.value.close()
    page.close()
