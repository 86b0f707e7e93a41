"""Knobs and the stepper in JupyterLab: by keyboard, after a restart, in a notebook opened again, as a page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Open
from tests.browser.server import Course
from tests.browser.study import choose
from xinfer_lab.course.pages import page as as_page

pytestmark = pytest.mark.browser
SOURCE = """\
from tests.views.examples import stream_layers
from xinfer_lab.views.stepper import step_through

run = stream_layers(layers=3, pool=2)
step_through(run.stream, run.timeline, title="Three layers")"""
STORED = "Run this cell to turn its knobs: command."
LOST = "Run this cell again"


def empty(path: Path) -> Path:
    """A notebook with the stepper in its first cell, and a second cell."""
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**code, "id": "stepper", "source": SOURCE}, {**code, "id": "below", "source": "print('below')"}]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


class Opened:
    """The notebook in JupyterLab: its page, and the parts of the stepper."""

    def __init__(self, page: Page, course: Course, notebook: Path) -> None:
        self.page, self.course, self.notebook = page, course, notebook

    def open(self) -> None:
        self.page.goto(self.course.url(f"lab/workspaces/knobs/tree/{self.notebook.relative_to(self.course.labs)}"))
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle")

    @property
    def output(self) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").first.locator(".jp-OutputArea")

    @property
    def slider(self) -> Locator:
        return self.output.get_by_role("slider", name="command")

    @property
    def picture(self) -> Locator:
        return self.output.locator("img.xinfer-picture").first

    def run(self) -> None:
        choose(self.page, "Run", "Run All Cells")
        expect(self.slider).to_be_visible()

    def save(self) -> None:
        self.page.keyboard.press("ControlOrMeta+s")
        expect(self.page.locator(".jp-mod-dirty")).to_have_count(0)

    def restart(self) -> None:
        choose(self.page, "Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog button", has_text="Restart").click()


@pytest.fixture
def opened(course: Course, watch: Open, request: pytest.FixtureRequest) -> Iterator[Opened]:
    watched = watch(course.origin, **getattr(request, "param", {}))
    here = Opened(watched.page, course, empty(course.labs / "knobs" / "knobs.ipynb"))
    here.open()
    here.run()
    yield here
    watched.page.close()
    assert (watched.complaints, watched.foreign) == ([], [])


def test_the_stepper_begins_at_0_and_every_key_moves_it(opened: Opened, artefacts: Path) -> None:
    slider, last = opened.slider, int(opened.slider.get_attribute("max") or 0)
    expect(slider).to_have_value("0")
    expect(opened.output).to_contain_text("Nothing was submitted yet.")
    slider.focus()
    for key, place in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        slider.press(key)
        expect(slider).to_have_value(str(place))
        expect(slider).to_have_attribute("aria-valuetext", str(place))
        expect(opened.output).to_contain_text(f"Command {place} of {last}" if place else "Nothing was submitted yet.")
    opened.page.screenshot(path=artefacts / "stepper-0.png")


def test_play_goes_to_the_end_and_the_space_bar_stops_it(opened: Opened, artefacts: Path) -> None:
    slider, last = opened.slider, opened.slider.get_attribute("max") or ""
    slider.focus()
    slider.press(" ")
    pause = opened.output.get_by_role("button", name="Pause: command")
    expect(slider).to_have_value("2")
    opened.page.screenshot(path=artefacts / "stepper-plays.png")
    slider.press(" ")
    expect(pause).to_have_count(0)
    slider.press("End")
    slider.press("ArrowLeft")
    play = opened.output.get_by_role("button", name="Play: command")
    play.focus()
    play.press("Enter")
    expect(slider).to_have_value(last)
    expect(opened.output).to_contain_text(f"Command {last} of {last}")
    expect(play).to_be_visible()
    play.press("Enter")
    expect(slider).to_have_value("0")
    pause.press("Enter")


@pytest.mark.parametrize("opened", [{"reduced_motion": "reduce"}], indirect=True)
def test_who_wants_less_motion_goes_one_command_a_press(opened: Opened) -> None:
    button = opened.output.get_by_role("button", name="Next: command")
    for place in (1, 2):
        button.press("Enter")
        expect(opened.slider).to_have_value(str(place))
        expect(opened.output).to_contain_text(f"Command {place} of")


def test_after_the_kernel_was_restarted_the_picture_stays_and_says_what_to_do(opened: Opened, artefacts: Path) -> None:
    opened.slider.focus()
    opened.slider.press("End")
    expect(opened.output).to_contain_text("Command ")
    alt = opened.picture.get_attribute("alt")
    opened.restart()
    expect(opened.output).to_contain_text(LOST)
    expect(opened.slider).to_have_count(0)
    assert opened.picture.is_visible() and opened.picture.get_attribute("alt") == alt
    opened.page.screenshot(path=artefacts / "stepper-lost.png")
    opened.run()
    expect(opened.output).not_to_contain_text(LOST)


def test_a_kernel_that_is_gone_is_noticed_when_a_knob_is_turned(opened: Opened) -> None:
    choose(opened.page, "Kernel", "Shut Down Kernel")
    expect(opened.page.locator("#jp-main-statusbar")).to_contain_text("No Kernel")
    opened.slider.press("ArrowRight")
    expect(opened.output).to_contain_text(LOST)
    expect(opened.slider).to_have_count(0)


def test_a_busy_kernel_is_waited_for(opened: Opened) -> None:
    below = opened.page.locator(".jp-Notebook .jp-Cell").nth(1)
    below.locator(".cm-content").click()
    opened.page.keyboard.press("ControlOrMeta+a")
    opened.page.keyboard.insert_text("import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)")
    opened.page.keyboard.press("ControlOrMeta+Enter")
    expect(opened.page.locator("#jp-main-statusbar")).to_contain_text("| Busy")
    opened.slider.press("ArrowRight")
    expect(opened.output).to_contain_text("The kernel is busy")
    (opened.notebook.parent / "go").touch()
    expect(opened.output).to_contain_text("Command 1 of")
    expect(opened.output).not_to_contain_text("The kernel is busy")


def test_a_notebook_opened_again_has_a_live_stepper_or_its_picture(opened: Opened, artefacts: Path) -> None:
    opened.save()
    opened.page.reload()
    expect(opened.slider).to_be_visible()  # the kernel is still there
    opened.slider.press("ArrowRight")
    expect(opened.output).to_contain_text("Command 1 of")
    for session in opened.page.request.get(opened.course.url("api/sessions")).json():
        if session["path"].endswith(opened.notebook.name):
            opened.page.request.delete(
                opened.course.url(f"api/sessions/{session['id']}"), headers={"Authorization": "token tests"}
            )
    opened.page.goto("about:blank")
    opened.open()
    expect(opened.output).to_contain_text(STORED)
    expect(opened.picture).to_be_visible()
    expect(opened.slider).to_have_count(0)
    expect(opened.output).not_to_contain_text(re.compile("Error displaying|Loading widget"))
    opened.page.screenshot(path=artefacts / "stepper-again.png")


def test_an_exported_page_shows_the_whole_run_and_how_to_turn_the_knobs(
    opened: Opened, watch: Open, tmp_path: Path
) -> None:
    opened.save()
    assert "widget-view" not in opened.notebook.read_text(encoding="utf-8")
    written = tmp_path / "knobs.html"
    written.write_text(as_page(opened.notebook), encoding="utf-8")
    exported = watch(tmp_path.as_uri())
    exported.page.goto(written.as_uri())
    expect(exported.page.locator("img.xinfer-picture").first).to_have_attribute("alt", re.compile("events in"))
    expect(exported.page.locator("body")).to_contain_text(STORED)
    expect(exported.page.locator("input")).to_have_count(0)
    exported.page.close()
