"""What a page may not hold, found by reading it as a browser would: what it loads, what runs, and its text."""

from __future__ import annotations

from html.parser import HTMLParser

LOADS = {"src", "srcset", "data", "poster", "background", "action", "formaction", "xlink:href", "manifest", "ping"}
ACTIVE = {"script", "iframe", "object", "embed", "form", "base", "audio", "video", "applet", "frame", "template", "svg"}


class PageReader(HTMLParser):
    """Collects elements, attributes and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._text: list[str] = []
        self._style = False
        self.styles: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        (self.styles if self._style else self._text).append(data)

    @property
    def text(self) -> str:
        """What is read on the page, blanks as one."""
        return " ".join("".join(self._text).split())


def loaded(page: PageReader) -> list[str]:
    """What a browser fetches for the page, other than data in the page itself."""
    found = []
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            fetches = name in LOADS or (name == "href" and tag in ("link", "image", "use"))
            if fetches and not value.startswith("data:"):
                found.append(f"{tag} {name}={value}")
            if name == "style" and "url(" in value:
                found.append(value)
    return found + [style for style in page.styles if "url(" in style or "@import" in style]


def active(page: PageReader) -> list[str]:
    """What runs on the page: elements that bring programs or other pages, handlers of events, script addresses."""
    found = []
    for tag, attributes in page.elements:
        if tag in ACTIVE:
            found.append(tag)
        for name, value in attributes.items():
            address = "".join(value.split()).lower()
            if name.startswith("on") or (
                name == "href" and address.startswith(("javascript:", "vbscript:", "data:text"))
            ):
                found.append(f"{tag} {name}={value}")
    return found
