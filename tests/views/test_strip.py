"""The frame that strips and maps share."""

import itertools
from xml.etree import ElementTree

import pytest

from xinfer_lab.views.strip import Strip


def drawn(strip: Strip, count: int, bands: list[tuple[int, int, float]]) -> str:
    def band(begin: int, end: int, top: float) -> list[str]:
        bands.append((begin, end, top))
        return []

    return strip.draw(
        count,
        band,
        title="Cells",
        description="Some cells.",
        legend=[("band", "a cell")],
        band_height=50,
        hues=(),
        empty="no cells",
        theme="auto",
    )


def test_cells_are_cut_into_bands_as_wide_as_the_picture_and_every_cell_is_drawn_once() -> None:
    strip, bands = Strip("a strip", 412, 100, 30), list[tuple[int, int, float]]()
    svg = drawn(strip, 25, bands)
    assert strip.columns == 10
    assert [(begin, end) for begin, end, _ in bands] == [(0, 10), (10, 20), (20, 25)]
    tops = [top for *_, top in bands]
    assert [below - above for above, below in itertools.pairwise(tops)] == [50, 50]
    assert float(ElementTree.fromstring(svg).get("height", 0)) == tops[-1] + 50
    assert strip.x(strip.columns) <= strip.width


def test_without_cells_a_sentence_stands_in_their_place_and_no_legend() -> None:
    bands: list[tuple[int, int, float]] = []
    svg = drawn(Strip("a strip", 412, 100, 30), 0, bands)
    assert not bands and "no cells" in svg and "a cell<" not in svg


def test_a_picture_too_narrow_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="a strip needs at least 320 pixels of width, not 319"):
        Strip("a strip", 319, 100, 30)
