"""Labs as web pages to read: one HTML file each, complete in itself, in colours that can be told apart.

python -m xinfer_lab.course.pages INTO [NOTEBOOK ...]      labs/*/*.ipynb if none is named

Nothing in a page is loaded from another host; without a kernel, every static picture and table is there.
"""

from __future__ import annotations

import argparse
import base64
import re
import sys
from pathlib import Path
from typing import Any

from nbconvert import HTMLExporter
from traitlets.config import Config

__all__ = ["main", "page"]

# nbconvert's colours of prompts, comments, numbers and word operators have a contrast below 4.5:1 (WCAG 2.2, 1.4.3).
_COLOURS = {
    "light": {"prompt": "#57606a", "comment": "#2f6363", "number": "#006b00", "word": "#8a00e0"},
    "dark": {"prompt": "#a3adb8", "comment": "#79b8b8", "number": "#7ccf7c", "word": "#d19aff"},
}

# Without widgets: knobs are dead in a page, and the picture that they showed first is there as HTML.
_SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]
_PICTURE = re.compile(r'(<img [^>]*src=")([\w-]+\.svg)(")')


def page(notebook: Path, *, theme: str = "light") -> str:
    """``notebook`` with its outputs as HTML; ``theme`` is "light" or "dark"."""
    exporter: Any = HTMLExporter(theme=theme, config=Config(NbConvertBase={"display_data_priority": _SHOWN}))  # type: ignore[no-untyped-call]
    # Where scripts for formulas and widgets would be loaded from.
    exporter.mathjax_url = exporter.require_js_url = exporter.jquery_url = ""
    exporter.jupyter_widgets_base_url = exporter.html_manager_semver_range = exporter.widget_renderer_url = ""
    body, _ = exporter.from_filename(str(notebook))
    body = _PICTURE.sub(lambda found: _embedded(found, notebook.parent), str(body))
    colours = _COLOURS[theme]
    style = (
        f"<style>.jp-InputPrompt,.jp-OutputPrompt{{color:{colours['prompt']}!important;opacity:1!important}}"
        f".highlight :is(.c,.c1,.cm){{color:{colours['comment']}!important}}"
        f".highlight :is(.mi,.mf,.mb,.mh,.mo){{color:{colours['number']}!important}}"
        f".highlight .ow{{color:{colours['word']}!important}}"
        f"img.xinfer-picture,.jp-MarkdownOutput img{{color-scheme:{theme}}}"
        # A link within a text is told by more than its colour (WCAG 2.2, 1.4.1).
        ".jp-RenderedHTMLCommon :is(p,li,td,th) a{text-decoration:underline!important}"
        # A line of hints after another, each large enough to be hit (WCAG 2.2, 2.5.8).
        "summary{min-height:24px;padding:3px 0}"
        # Long lines are broken between words, so that nothing is cut off on a narrow screen.
        ".highlight pre,.jp-OutputArea-output pre{white-space:pre-wrap!important;word-break:normal!important;"
        "overflow-wrap:anywhere}</style></head>"
    )
    return body.replace("</head>", style, 1)


def _embedded(found: re.Match[str], folder: Path) -> str:
    """An image's tag with the SVG beside the notebook in it. (nbconvert's own embedding closes every `<details>`.)"""
    file = folder / found[2]
    if not file.is_file():
        return found[0]
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return f"{found[1]}data:image/svg+xml;base64,{data}{found[3]}"


def main(arguments: list[str] | None = None) -> int:
    """Write the pages into a folder."""
    parser = argparse.ArgumentParser(prog="python -m xinfer_lab.course.pages", description="Labs as web pages.")
    parser.add_argument("into", type=Path)
    parser.add_argument("notebooks", type=Path, nargs="*")
    parser.add_argument("--theme", choices=list(_COLOURS), default="light")
    asked = parser.parse_args(arguments)
    notebooks = asked.notebooks or sorted(Path("labs").glob("*/*.ipynb"))
    asked.into.mkdir(parents=True, exist_ok=True)
    for notebook in notebooks:
        written = asked.into / f"{notebook.stem}.html"
        written.write_text(page(notebook, theme=asked.theme), encoding="utf-8")
        print(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
