"""What browser tests share: a Chromium, a server, and one study of each lab, looked at by many tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, Route, sync_playwright

from tests.browser.chromium import LAUNCH, find_chromium
from tests.browser.server import PATIENCE, Course, running_course
from tests.browser.study import Study, study
from tests.notebooks import SOLUTIONS
from tests.project import ROOT


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests out where there is no Chromium; the conftest.py above says how many."""
    browser = [item for item in items if item.get_closest_marker("browser")]
    if browser and find_chromium() is None:
        items[:] = [item for item in items if item not in browser]
        config.hook.pytest_deselected(items=browser)


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """Where screenshots are left: artifacts/browser, which git ignores."""
    folder = ROOT / "artifacts" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """One server for all tests of a process."""
    with running_course(tmp_path_factory.mktemp("course")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a process."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=LAUNCH)
        yield chromium
        chromium.close()


@dataclass
class Watched:
    """A page whose complaints and foreign requests are written down; the latter are refused, too."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


every_lab = pytest.mark.parametrize("source", SOLUTIONS, ids=[path.parent.name for path in SOLUTIONS])
Open = Callable[..., Watched]


@pytest.fixture(scope="session")
def watch(browser: Browser) -> Iterator[Open]:
    """Opens a page that may ask ``origin`` alone; keyword arguments are those of a browser's context."""
    contexts: list[BrowserContext] = []

    def open_page(origin: str, **options: object) -> Watched:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        watched = Watched(context.new_page())

        def decide(route: Route, request: Request) -> None:
            if request.url.startswith((f"{origin}/", "data:", "blob:")):
                route.continue_()
            else:
                watched.foreign.append(request.url)
                route.abort()

        def listen(message: ConsoleMessage) -> None:
            if message.type == "error":
                watched.complaints.append(message.text)

        context.route("**/*", decide)
        watched.page.on("console", listen)
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        return watched

    yield open_page
    for context in contexts:
        context.close()


@dataclass
class Worked:
    """A lab that was studied, and what its page complained of."""

    seen: Study
    watched: Watched


@pytest.fixture(scope="session")
def studied(course: Course, watch: Open, artefacts: Path) -> Callable[[Path], Worked]:
    """Studies a lab, once a process, and closes its page."""
    done: dict[Path, Worked | str] = {}

    def of(source: Path) -> Worked:
        if source not in done:
            watched = watch(course.origin)
            try:
                done[source] = Worked(study(watched.page, course, source, artefacts), watched)
            except (AssertionError, Error) as error:
                watched.page.screenshot(path=artefacts / f"{source.parent.name}-stopped.png")
                done[source] = f"{str(error)[:2000]}\ncomplaints: {watched.complaints}"
            finally:
                watched.page.close()
        found = done[source]
        assert isinstance(found, Worked), found
        return found

    return of
