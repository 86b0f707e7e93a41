"""The picture that moves on the start page: layers wait in RAM, pass through two slots, and are computed there.

An SVG with CSS animations, no script. Where the reader asks for less motion it stands still, at a moment that shows the
same: one slot is filled while the other is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from xinfer_lab.views.theme import HUES

__all__ = ["moving_slots"]

LAYERS = 6
STEP = 1.5
"""Seconds from one layer to the next."""

ALT = (
    "Six layers of a model wait in RAM. One after the other is copied over the link into one of two slots on the GPU. "
    "While a layer in one slot is computed, the next one is on its way to the other slot."
)

_RAM_X, _SLOT_X, _BOX, _TOP, _GAP = 40, 470, 88, 62, 34
_STYLE = """
.mv text{font:600 14px system-ui,sans-serif;fill:currentColor}
.mv .frame{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.55}
.mv .home{fill:none;stroke:currentColor;stroke-dasharray:3 3;opacity:.4}
.mv .small{font-weight:400;font-size:13px;opacity:.8}
@media (prefers-reduced-motion:reduce){.mv *{animation:none!important}}
"""


def moving_slots() -> str:
    """The figure, with its description as text below."""
    cycle = LAYERS * STEP
    rules = "".join(_rules(layer, cycle) for layer in range(LAYERS))
    boxes = "".join(_layer(layer) for layer in range(LAYERS))
    frames = "".join(_frames())
    return (
        f"<figure><style>{_STYLE}{rules}</style>"
        f'<svg class="mv" viewBox="0 0 720 262" role="img" aria-label="{ALT}" style="width:100%;height:auto">'
        f"{frames}{boxes}</svg><figcaption>{ALT}</figcaption></figure>"
    )


def _home(layer: int) -> tuple[int, int]:
    return _RAM_X + layer % 2 * (_BOX + 12), _TOP + layer // 2 * (_GAP * 2)


def _slot(layer: int) -> tuple[int, int]:
    return _SLOT_X, _TOP + 20 + layer % 2 * 84


def _frames() -> Iterator[str]:
    yield f'<text x="{_RAM_X}" y="40">RAM</text><text x="{_SLOT_X}" y="40">GPU</text>'
    yield f'<text x="330" y="{_TOP + 92}" class="small" text-anchor="middle">the link</text>'
    yield f'<path class="frame" d="M250 {_TOP + 104} h150 m-10 -6 l10 6 -10 6" />'
    for layer in range(LAYERS):
        x, y = _home(layer)
        yield f'<rect class="home" x="{x}" y="{y}" width="{_BOX}" height="44" rx="5"/>'
    for number in range(2):
        x, y = _slot(number)
        yield f'<rect class="frame" x="{x - 6}" y="{y - 6}" width="{_BOX + 12}" height="56" rx="7"/>'
        yield f'<text class="small" x="{x + _BOX + 18}" y="{y + 27}">slot {number}</text>'


def _layer(layer: int) -> str:
    x, y = _home(layer)
    hue = HUES[layer % len(HUES)]
    # Without motion: layer 2 lies in its slot and is computed, layer 3 is on its way to the other one.
    rest = {2: _offset(2), 3: (150, 62)}.get(layer, (0, 0))
    place = f'x="{x}" y="{y}" width="{_BOX}" height="44" rx="5"'
    return (
        f'<g class="go{layer}" transform="translate({rest[0]} {rest[1]})">'
        f'<rect class="box{layer}" {place} fill="{hue}" fill-opacity=".35" stroke="{hue}" stroke-width="2"/>'
        f'<text x="{x + _BOX / 2}" y="{y + 27}" text-anchor="middle">layer {layer}</text></g>'
    )


def _offset(layer: int) -> tuple[int, int]:
    (x, y), (to_x, to_y) = _home(layer), _slot(layer)
    return to_x - x, to_y - y


def _rules(layer: int, cycle: float) -> str:
    """Layer i is copied from its step's beginning to its end, computed in the next step, and gone after that."""
    x, y = _offset(layer)
    there, arrive, done = f"translate({x}px,{y}px)", 100 / LAYERS, 200 / LAYERS
    moves = (
        (0, "none", 1), (arrive, there, 1), (done - 2, there, 1), (done, there, 0), (done + 0.1, "none", 0),
        (done + 6, "none", 1), (100, "none", 1),
    )  # fmt: skip
    lit = ((0, 0.35), (arrive, 0.35), (arrive + 1, 0.9), (done - 2, 0.9), (done, 0.35), (100, 0.35))
    when = f"{cycle}s linear {layer * STEP - cycle}s infinite"
    return (
        f".mv .go{layer}{{animation:mv{layer} {when}}}.mv .box{layer}{{animation:on{layer} {when}}}"
        f"@keyframes mv{layer}{{{''.join(f'{at:.1f}%{{transform:{to};opacity:{seen}}}' for at, to, seen in moves)}}}"
        f"@keyframes on{layer}{{{''.join(f'{at:.1f}%{{fill-opacity:{full}}}' for at, full in lit)}}}"
    )
