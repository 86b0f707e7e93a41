"""All that a submission brings is harmless once it is in: Markdown, pictures, texts for a terminal."""

from __future__ import annotations

import json

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from tests.html_rules import PageReader, active, loaded
from tests.marking import cells, hand_in, notebook
from xinfer_lab.course import clean
from xinfer_lab.course.feedback.safe import markdown
from xinfer_lab.course.notebook import Notebook, parse_notebook
from xinfer_lab.course.transplant import Transplant, transplant

RELEASED = parse_notebook(notebook(cells(filled=False, hidden=False, stream=False)))

ATTACKS = {
    "script": "<script>alert(1)</script>",
    "script across lines": "<script\n>alert(1)</script\n>",
    "handler": '<img src=x onerror="alert(1)">',
    "handler without quotes": "<svg/onload=alert(1)>",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg"><animate onbegin=alert(1) /></svg>',
    "javascript link": "[x](javascript:alert(1))",
    "link in brackets": "[x](<javascript:alert(1)>)",
    "link in brackets behind a tab": "[x](<\tjavascript:alert(1)>)",
    "link by entity": "[x](&#106;avascript:alert(1))",
    "link by escape": "[x](javascript\\:alert(1))",
    "link on the next line": "[x](\njavascript:alert(1))",
    "link around a picture": "[![y](attachment:a.png)](javascript:alert(1))",
    "defined link": "[x]\n\n[x]: javascript:alert(1)",
    "defined link on the next line": "[x]\n\n[x]:\n  javascript:alert(1)",
    "defined link with a name of two lines": "[x\ny]\n\n[x\ny]: <javascript:alert(1)>",
    "defined link in a quotation": "[x]\n\n> [x]: &#x6a;avascript:alert(1)",
    "address in angle brackets": "<javascript:alert(1)>",
    "link as HTML": '<a href="java&#10;script:alert(1)">x</a>',
    "data": "[x](data:text/html,<script>alert(1)</script>)",
    "data as a picture": "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    "picture from elsewhere": "![x](https://evil.example/x.png)",
    "picture by definition": "![x]\n\n[x]: //evil.example/x.png",
    "picture in a picture": "![![x](javascript:alert(1))](attachment:a.png)",
    "MathJax link": "$\\href{javascript:alert(1)}{x}$",
    "MathJax handler": "$\\class{x\" onload=\"alert(1)}{x}$ $$\\style{background:url(//evil.example)}{x}$$",
    "MathJax configuration": '<script type="text/x-mathjax-config">alert(1)</script>',
    "style": "<style>@import url(//evil.example/x.css);</style>",
    "refresh": '<meta http-equiv="refresh" content="0;url=javascript:alert(1)">',
    "base": '<base href="//evil.example/">',
    "form": '<form action="/formgrader/api/grade/1"><input name=x><button>go</button></form>',
    "frame": '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "object": '<object data="data:text/html,x"></object><embed src=x>',
    "comment": "<!--><img src=x onerror=alert(1)>-->",
    "declaration": "<!DOCTYPE html><?php <b> ?>",
    "closing": "</pre></code></div></body><script>alert(1)</script>",
    "code that ends early": "`<b>` ``` \n```\n<img src=x onerror=alert(1)>\n~~~\n",
    "half a tag": "<img src=x onerror=alert(1) x=",
    "template": "<template><script>alert(1)</script></template>",
    "math element": '<math href="javascript:alert(1)"><mtext></mtext></math>',
}  # fmt: skip


def in_formgrader(source: str) -> PageReader:
    """What nbconvert, and so nbgrader's own Formgrader, makes of a text."""
    renderer = IPythonRenderer(escape=False, attachments={"a.png": {"image/png": "iVBORw0KGgo="}})
    return PageReader(str(MarkdownWithMath(renderer=renderer).render(source)))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_that_is_active_gets_into_a_marked_notebook(attack: str) -> None:
    kept = clean.source("markdown", attack)
    shown = in_formgrader(kept)
    assert active(shown) == [] and loaded(shown) == []
    assert not nh3.is_html(kept)
    assert clean.source("raw", attack) == kept
    page = PageReader(markdown(attack))
    assert active(page) == [] and loaded(page) == []


@given(st.text(alphabet="<>&\"'`$\\{}[]()!*_#|-\n\t scriptonhref:/=;%106avjl", max_size=400))
def test_no_play_with_markup_makes_anything_active(words: str) -> None:
    kept = clean.source("markdown", words)
    shown = in_formgrader(kept)
    assert active(shown) == [] and loaded(shown) == []
    assert clean.source("markdown", kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "Because *both* queues wait: see [the manual](https://example.org/a(b)) and `a[i]`, $a \\le b$.",
        "1 < 2, x<3, a <= b and `x < y`\n\n> a quotation\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [ ] done",
        "```python\nfor i in x[1:]:\n    print(f(i)[0], x[2])\n```\n\n![mine](attachment:a.png)",
        "sizes[0]: 4 bytes, and [1]: one\n\n[1]: https://example.org/",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert clean.source("markdown", text) == text


def test_code_stays_code_without_what_does_not_show() -> None:
    assert clean.source("code", "x = '<b>'\ny = f[0](1)\n") == "x = '<b>'\ny = f[0](1)\n"
    assert clean.source("code", "a = 1 \u202e# }\x0c\r\nb\rc\x00") == "a = 1 \ufffd# }\n\nb\nc\ufffd"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\x", "x"),
        ("\x9b31mred", "\ufffd31mred"),
        ("total 31 of 31\rtotal  0 of 31", "total 31 of 31\ntotal  0 of 31"),
        ("a\x08\x08b \u202etxt \ud800", "a\ufffd\ufffdb \ufffdtxt \ufffd"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_no_text_moves_a_terminal(text: str, kept: str) -> None:
    assert clean.plain(text) == kept and clean.plain_data({text: [text, 1, None]}) == {kept: [kept, 1, None]}


def test_only_pictures_are_kept_of_what_was_pasted() -> None:
    pasted = {
        "a.png": {"image/png": "iVBO\nRw0KGgo=", "text/html": "<b>"},
        "b.svg": {"image/svg+xml": "<svg onload=alert(1)>"},
        "c.png": {"image/png": "no, never"},
        "d.png": "text",
        "e.png": {"image/png": ["iVBO"]},
        "\x1b[2Jf": {"image/gif": "R0lG"},
        "big": {"image/png": "A" * (clean.LARGEST_PICTURES + 4)},
    }
    assert clean.pictures(pasted) == {"a.png": {"image/png": "iVBORw0KGgo="}, "f": {"image/gif": "R0lG"}}


def hostile(**changed: str) -> Transplant:
    listed = hand_in(changed, own={"setup": "x = 1"})
    for cell in listed:
        cell["metadata"] |= {"raw_mimetype": "text/html", "evil": "<script>"}
        if cell["cell_type"] != "code":
            cell["attachments"] = {"a.svg": {"image/svg+xml": "<svg onload=alert(1)>"}}
        else:
            cell["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>"}}]
    listed.append({"cell_type": "raw", "id": "<script>", "metadata": {}, "source": "<script>alert(1)</script>"})
    listed.append({"cell_type": "markdown", "id": "x", "metadata": {"nbgrader": "<b>"}, "source": "<img src=x>"})
    return transplant(RELEASED, parse_notebook(notebook(listed) | {"metadata": {"title": "<script>"}}))


def test_of_metadata_outputs_ids_and_attachments_nothing_of_a_students_is_left() -> None:
    found = hostile(written="<img src=x onerror=alert(1)>", title="<script>alert(1)</script>")
    stored = json.dumps([[placed.name, placed.cell.__reduce__()[2]] for placed in found.cells], default=str)
    assert "<script" not in stored and "<img" not in stored and "svg" not in stored and "evil" not in stored


def test_cleaning_again_finds_the_same_cells() -> None:
    found = hostile(
        written="\x1b[1m<b>\r\n", explore="explored = [double(n) for n in range(3)]\nprint(explored)\x1b[0m"
    )
    again = transplant(RELEASED, Notebook(tuple(placed.cell for placed in found.cells)))
    assert [(p.origin, p.cell) for p in again.cells] == [(p.origin, p.cell) for p in found.cells]
