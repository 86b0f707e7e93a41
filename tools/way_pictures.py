"""Draw the two pictures of docs/architecture.md: from a checkpoint to logits, and from a notebook to a mark.

They are drawn by hand: what they show is the design, which no run can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xinfer_lab.views.picture import Picture
from xinfer_lab.views.svg import document, element, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

__all__ = ["machine", "marking", "way_pictures"]

WIDTH = 960
LINE = 16.0
SIZE = 12.5

Box = tuple[float, float, float, float]
"""x, y, width and height."""

Row = tuple[str, str, str]
"""From where, to where, and what."""


def box(place: Box, *words: str, look: str = "outline", fill: str | None = None) -> Iterator[str]:
    """A box with lines of text in its middle, the first of them strong; ``fill`` names a pattern for its lower edge."""
    x, y, width, height = place
    yield element("rect", class_=look, x=x, y=y, width=width, height=height, rx=4)
    if fill:
        yield element("rect", fill_url=fill, x=x + 1, y=y + height - 8, width=width - 2, height=7)
        height -= 8
    top = y + height / 2 - LINE * len(words) / 2 + 12.5
    for number, line in enumerate(words):
        kind = "strong" if number == 0 else None
        yield text(x + width / 2, top + number * LINE, line, font_size=SIZE, text_anchor="middle", class_=kind)


def band(place: Box, words: str) -> Iterator[str]:
    """The ground on which boxes stand, with its name at the top left."""
    x, y, width, height = place
    yield element("rect", class_="band", x=x, y=y, width=width, height=height, rx=6)
    yield text(x + 12, y + 20, words, font_size=SIZE, class_="muted strong")


def arrow(path: str, *, dashed: bool = False) -> str:
    """A line along ``path`` with a head at its end."""
    dashes = "5 4" if dashed else None
    return element("path", class_="line flow", d=path, stroke_width=1.8, stroke_dasharray=dashes, marker_end_url="tip")


def note(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    """A label that stays legible on a line."""
    return text(x, y, words, font_size=SIZE, text_anchor=anchor, class_="muted halo")


def picture(
    parts: Sequence[str], *, height: float, title: str, alt: str, table: Sequence[Row], theme: ThemeName
) -> Picture:
    """``parts`` on paper, with ``title`` above them."""
    paper = element("rect", class_="paper", width=WIDTH, height=height, rx=6)
    head = text(12, 27, title, font_size=18.0, class_="strong")
    svg = document(
        "\n".join([paper, head, *parts]), width=WIDTH, height=height, title=title, description=alt,
        style=stylesheet(theme, (0, 1)), definitions=definitions((0, 1)),
    )  # fmt: skip
    return Picture(title, svg, alt, ("from", "to", "what"), tuple(table))


# ------------------------------------------------------------------------------------------------- checkpoint to logits


def machine(theme: ThemeName) -> Picture:
    """A checkpoint's bytes on their way to logits, and the record of every command."""
    parts = [
        *band((12, 44, 416, 226), "host memory"),
        *band((532, 44, 416, 226), "device memory, within a budget"),
        *box((28, 78, 152, 68), "checkpoint", "config.json and", "*.safetensors, mapped"),
        *box((252, 78, 160, 68), "upload heap", "pinned: layers,", "token ids"),
        *box((28, 208, 152, 46), "next token", "sampled on the host"),
        *box((252, 208, 160, 46), "readback heap", "logits"),
        *box((548, 78, 104, 32), "slot 0", look="s0", fill="slot0"),
        *box((548, 114, 104, 32), "slot 1", look="s1", fill="slot1"),
        *box((772, 78, 160, 68), "embed, then", "decoder_layer", "for each layer"),
        *box((548, 208, 168, 46), "what stays", "KV cache, embedding, …"),
        *box((772, 208, 160, 46), "lm_head", "final norm and head"),
        arrow("M180,112 H250"),
        note(215, 104, "read once"),
        arrow("M412,112 H546"),
        note(480, 104, "copy queue"),
        note(480, 130, "over the link"),
        arrow("M652,98 H770"),
        note(711, 90, "fence copied"),
        arrow("M772,130 H654", dashed=True),
        note(711, 149, "fence consumed"),
        arrow("M852,146 V206"),
        note(860, 182, "hidden state", anchor="start"),
        arrow("M690,208 C710,176 740,164 776,148"),
        arrow("M716,231 H770"),
        arrow("M852,254 C852,290 470,296 414,240"),
        note(600, 298, "direct queue; the host waits"),
        arrow("M252,231 H182"),
        arrow("M120,208 C130,176 210,178 250,140"),
        note(150, 176, "token ids"),
        *_stream(),
    ]
    alt = (
        "A checkpoint's weights are mapped from its files and read once into an upload heap, pinned host memory. The "
        "copy queue copies them over the link, layer by layer, into two slots in device memory. The direct queue waits "
        "for the fence copied, computes the decoder layer in its slot, and signals the fence consumed; then the slot "
        "is refilled. Final norm and head give logits, which go to a readback heap; the host samples the next token, "
        "whose id is uploaded. Every command is admitted, checked, performed and appended to the command stream, which "
        "the hazard checker, the virtual clock, the pictures, the replay and the grading read."
    )
    table = [
        ("checkpoint", "upload heap", "weights, read once"),
        ("upload heap", "slots", "layers, by the copy queue over the link"),
        ("slots", "decoder_layer", "weights; the direct queue waits for the fence copied"),
        ("decoder_layer", "slots", "the fence consumed: the slot may be refilled"),
        ("decoder_layer", "lm_head", "hidden state"),
        ("lm_head", "readback heap", "logits, by the direct queue"),
        ("readback heap", "next token", "logits"),
        ("next token", "upload heap", "token ids"),
        ("every command", "command stream", "a record, admitted, checked and performed before it is appended"),
        ("command stream", "its readers", "hazard checker, virtual clock, pictures, replay, grading"),
    ]
    title = "From a checkpoint to logits"
    return picture(parts, height=484, title=title, alt=alt, table=table, theme=theme)


def _stream() -> Iterator[str]:
    """Each command on its way into the stream, and who reads that."""
    yield from band((12, 312, 936, 84), "Device.submit: the one way in, for every copy, dispatch, signal and wait")
    steps = ("admitted", "checked", "performed", "appended")
    for number, word in enumerate(steps):
        yield from box((28 + number * 166, 344, 118, 36), word)
        yield arrow(f"M{146 + number * 166},362 h44")
    yield from box((692, 344, 240, 36), "command stream, as JSON")
    readers = ("hazard checker", "virtual clock", "pictures", "replay", "grading")
    yield element("path", class_="line flow", d="M812,380 V410 M104,410 H856", stroke_width=1.8)
    for number, word in enumerate(readers):
        x = 28 + number * 188
        yield from box((x, 434, 152, 36), word)
        yield arrow(f"M{x + 76},410 V432")


# ----------------------------------------------------------------------------------------------------- notebook to mark

MESSAGES = (
    (200, "marking", "trusted", '{"draw": piece, "seed": n}'),
    (228, "trusted", "marking", '{"cases": […], "denied": […]}'),
    (264, "marking", "recording", '{"steps": […], "denied": […]}'),
    (336, "recording", "marking", '{"asks": n}'),
    (364, "marking", "recording", "the cases, without labels"),
    (436, "recording", "marking", '{"recorded": n, "data": {…}}'),
    (472, "marking", "trusted", '{"verify": piece, "cases", "data"}'),
    (560, "trusted", "marking", '{"report": {…}}'),
)
"""Each line of JSON: where it stands, who writes it, who reads it, and its form."""


def marking(theme: ThemeName) -> Picture:
    """A notebook on its way to a mark: three processes, and the lines of JSON between them."""
    parts = [
        *band((12, 44, 280, 646), "trusted process"),
        *band((340, 44, 280, 646), "marking process"),
        *band((668, 44, 280, 646), "recording process, in the sandbox"),
        *box((356, 74, 118, 36), "handed in"),
        *box((486, 74, 118, 36), "released"),
        arrow("M415,110 V134"),
        arrow("M545,110 V134"),
        *box((356, 136, 248, 36), "transplant"),
        *box((684, 280, 248, 40), "run the cells", "what holds answers is not on disk"),
        *box((684, 380, 248, 40), "ask the answer, in a fork", "write down what it does"),
        *box((28, 488, 248, 52), "verify", "works out again what is right"),
        *box((356, 578, 248, 36), "a verdict for each grade cell"),
        *box((356, 638, 118, 36), "notebook"),
        *box((486, 638, 118, 36), "gradebook"),
        arrow("M415,614 V636"),
        arrow("M545,614 V636"),
        *(part for message in MESSAGES for part in _message(*message)),
    ]
    alt = (
        "Three processes. The marking process puts the student's cells into the released notebook. It asks the trusted "
        "process to draw cases and sends the cells to the recording process in the sandbox, which runs them. When that "
        "process asks for the cases of an answer, it gets them without labels, asks the answer in a fork, and sends "
        "back what it did, as data. Cases and data go to the trusted process, which works out again what is right and "
        "returns a report. The marking process writes a verdict for each grade cell into the marked notebook and "
        "into the gradebook. Between processes go lines of JSON and nothing else."
    )
    table = [(source, target, form) for _, source, target, form in MESSAGES]
    title = "From a notebook to a mark"
    return picture(parts, height=702, title=title, alt=alt, table=table, theme=theme)


EDGES = {("marking", "trusted"): (340, 294), ("trusted", "marking"): (292, 338)}
EDGES |= {("marking", "recording"): (620, 666), ("recording", "marking"): (668, 622)}


def _message(y: float, source: str, target: str, form: str) -> Iterator[str]:
    """A line of JSON between two processes, written into the lane of the one that reads it."""
    start, end = EDGES[source, target]
    yield arrow(f"M{start},{y} H{end}")
    right = end > start
    x = end + 10 if right else end - 10
    yield text(x, y + 4, form, font_size=SIZE, text_anchor="start" if right else "end", font_family="monospace")


def way_pictures() -> Iterator[tuple[str, Picture]]:
    """Each picture with its path within the project."""
    for theme in ("light", "dark"):
        yield f"docs/machine-{theme}.svg", machine(theme)
        yield f"docs/marking-{theme}.svg", marking(theme)
