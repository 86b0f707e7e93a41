"""Draw the pictures of Lab 5: pages that come and go, CLOCK's dial, a cyclic scan under two rules, one pool for all."""

from __future__ import annotations

from collections.abc import Iterator

from xinfer_lab.labs.lab5.given.replacement import Replacement, compare_policies
from xinfer_lab.labs.lab5.page_trial import PATTERNS, try_pool, uses_of
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.svg import document, element, number, text
from xinfer_lab.views.theme import definitions, stylesheet
from xinfer_lab.views.value_bars import ValueBar, value_bars

__all__ = ["ALL_NAMES", "ALL_SIZES", "ALL_USES", "dials", "explored", "lab5_pictures", "mechanism", "scan", "together"]

SCAN = [0, 1, 2, 3, 4, 5] * 3
PAGES, FRAMES, USES = 8, 4, 48
"""What the exploration shows where there is no kernel."""


def mechanism() -> Picture:
    """Ten uses of five pages through three frames; page 1 is written."""
    title = "Ten uses of five pages through three frames; page 1 is written"
    return try_pool([0, 1, 0, 2, 0, 3, 1, 0, 4, 0], 3, "clock", written={1}, title=title).picture


def scan(policy: str) -> Picture:
    """Three passes over six pages through four frames."""
    name = {"lru": "LRU", "belady": "Belady's rule"}[policy]
    return try_pool(SCAN, 4, policy, title=f"Three passes over six pages, four frames: {name}").picture


ALL_NAMES = {0: "layer 0", 1: "layer 1", 2: "kv 0", 3: "kv 1"} | {
    4 + 3 * layer + expert: f"expert {layer}.{expert}" for layer in (0, 1) for expert in range(3)
}
"""What lies in the pool that holds everything: two layers, the KV block of each, and three experts of each."""

ALL_SIZES = {0: 2, 1: 2}
"""Pages of a thing, where it is more than one."""

ALL_USES = [
    thing
    for chosen in ((0, 1), (0, 2), (1, 2))
    for layer in (0, 1)
    for thing in (layer, 2 + layer, 4 + 3 * layer + chosen[layer])
]
"""Three tokens: in each layer its weights, its KV block, which is written, and the expert that the token chose."""


def together() -> Picture:
    """Weights, experts and KV in one pool of eight frames."""
    title = "Layers (L), their KV blocks (K) and experts (layer.number) in one pool of eight frames"
    trial = try_pool(ALL_USES, 8, "clock", sizes=ALL_SIZES, names=ALL_NAMES, written={2, 3}, title=title)
    return trial.picture


DIALS = (
    ("page 4 is needed; all are marked", (0, 1, 2, 3), {0, 1, 2, 3}, 0),
    ("0 went; 4 is just behind the hand", (4, 1, 2, 3), {4}, 1),
    ("2 is used", (4, 1, 2, 3), {4, 2}, 1),
    ("5 is needed; 1 goes", (4, 5, 2, 3), {4, 5, 2}, 2),
    ("6 is needed; 2 stays, 3 goes", (4, 5, 2, 6), {4, 5, 6}, 0),
)
"""Words, the pages around the dial from the top, those with a mark, and the place that the hand points at."""


def dials() -> Picture:
    """CLOCK at five moments."""
    width, height, radius = 960, 264, 58.0
    parts = [
        element("rect", class_="paper", width=width, height=height, rx=6),
        text(12, 26, "CLOCK, at five moments: four frames around a dial", font_size=18.0, class_="strong"),
    ]
    rows = []
    for place, (words, pages, marked, hand) in enumerate(DIALS):
        x, y = 100.0 + 190 * place, 130.0
        spots = ((0, -radius), (radius, 0), (0, radius), (-radius, 0))
        dx, dy = spots[hand]
        line = f"M{number(x)},{number(y)} L{number(x + 0.55 * dx)},{number(y + 0.55 * dy)}"
        parts.append(element("path", class_="line flow", d=line, stroke_width=2.4, marker_end_url="tip"))
        for page, (left, down) in zip(pages, spots, strict=True):
            box = {"x": x + left - 17, "y": y + down - 15, "width": 34.0, "height": 30.0, "rx": 4.0}
            parts.append(element("rect", class_="s0" if page in marked else "band", **box))
            if page in marked:
                stripe = {"x": x + left - 16, "y": y + down + 8, "width": 32.0, "height": 6.0}
                parts.append(element("rect", fill_url="slot0", **stripe))
            words_of = {"font_size": 14.0, "text_anchor": "middle", "class_": "strong" if page in marked else "muted"}
            parts.append(text(x + left, y + down + 4, page, **words_of))
        for line, said in enumerate(f"{place + 1}. {words}".split("; ")):
            parts.append(text(x, y + radius + 42 + 16 * line, said, font_size=12.5, text_anchor="middle"))
        order = [pages[(hand + step) % 4] for step in range(4)]
        shown = ", ".join(f"{page} {'marked' if page in marked else 'without a mark'}" for page in order)
        rows.append((str(place + 1), words, shown))
    alt = (
        "Five dials with four pages each and a hand; marked pages have a colour and a stripe. 1: pages 0 to 3, all "
        "marked, the hand at 0. 2: page 4 in the place of 0 and marked, the others without marks, the hand at 1. 3: 2 "
        "is marked too. 4: page 5 in the place of 1, the hand at 2. 5: 2 has lost its mark and stayed, page 6 is in "
        "the place of 3, the hand at 4."
    )
    svg = document(
        "\n".join(parts), width=width, height=height, title="CLOCK, at five moments", description=alt,
        style=stylesheet("auto", [0]), definitions=definitions([0]),
    )  # fmt: skip
    return Picture("CLOCK, at five moments", svg, alt, ("moment", "what happens", "from the hand on"), tuple(rows))


def explored() -> dict[str, tuple[Replacement, ...]]:
    """What each policy finds of each pattern's uses."""
    return {
        pattern: compare_policies(uses_of(pattern, PAGES, USES), FRAMES, ("lru", "clock", "belady"))
        for pattern in PATTERNS
    }


def _explore() -> Picture:
    bars = [
        ValueBar(f"{pattern}, {one.policy}", one.hits, one.policy)
        for pattern, all_ in explored().items()
        for one in all_
    ]
    title = f"Hits of {USES} uses of {PAGES} pages through {FRAMES} frames"
    return value_bars(bars, title=title, show=lambda hits: f"{hits:.0f}")


def lab5_pictures() -> Iterator[tuple[str, Picture]]:
    """Each picture with its path within the project."""
    folder = "solutions/lab5-page-pool"
    yield f"{folder}/pages.svg", mechanism()
    yield f"{folder}/clock.svg", dials()
    yield f"{folder}/scan-lru.svg", scan("lru")
    yield f"{folder}/scan-belady.svg", scan("belady")
    yield f"{folder}/together.svg", together()
    yield f"{folder}/explore.svg", _explore()
