"""Labs as web pages: complete, offline, and with what the knobs showed first."""

import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.notebooks import SOLUTIONS, released
from xinfer_lab.course.pages import main, page

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    shown = new_output(
        "display_data", {WIDGET: {"model_id": "x"}, "text/html": "<p>first picture</p>", "text/plain": "W"}
    )
    cells = [
        new_markdown_cell(
            "# A lab\n\n![words](a.svg)\n\n<details><summary>Hint</summary>\n\nfolded away\n\n</details>"
        ),
        new_code_cell("1 + 1", outputs=[shown], execution_count=1),
    ]
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    path = tmp_path / "lab.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


class Folded(HTMLParser):
    """The text inside of <details>."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.words = 0, ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "details"

    def handle_data(self, data: str) -> None:
        self.words += data if self.depth else ""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_has_pictures_hints_and_what_the_knobs_showed_first(notebook: Path, theme: str) -> None:
    html = page(notebook, theme=theme)
    assert 'alt="words"' in html and 'src="data:image/svg+xml;base64,' in html and 'src="a.svg"' not in html
    assert "<p>first picture</p>" in html and WIDGET not in html
    folded = Folded()
    folded.feed(html)
    assert "folded away" in folded.words


@pytest.mark.parametrize("source", SOLUTIONS, ids=lambda source: source.parent.name)
def test_a_page_loads_nothing(source: Path) -> None:
    html = page(released(source))
    loaded = re.findall(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(?!data:)([^"' >]+)""", html)
    assert loaded == []


def test_the_command_writes_a_page_a_notebook(
    notebook: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "out"), str(notebook), "--theme", "dark"]) == 0
    written = tmp_path / "out" / "lab.html"
    assert capsys.readouterr().out == f"{written}\n" and "A lab" in written.read_text(encoding="utf-8")
