"""The pictures that the project keeps are what `make pictures` draws, and say in words what they show."""

import re
from functools import cache
from xml.etree import ElementTree

from tests.project import text
from tools.pictures import pictures
from xinfer_lab.views.picture import Picture


@cache
def drawn() -> dict[str, Picture]:
    return dict(pictures())


def test_every_picture_is_up_to_date():
    for path, picture in drawn().items():
        assert text(path) == picture.svg, f"{path}: run `make pictures`, then `make labs`"


def test_readme_shows_the_timelines_light_and_dark_with_words():
    readme = text("README.md")
    light, dark = drawn()["docs/timelines-light.svg"], drawn()["docs/timelines-dark.svg"]
    assert light.svg != dark.svg and "docs/timelines-light.svg" in readme and "docs/timelines-dark.svg" in readme
    (alt,) = re.findall(r'alt="([^"]*)"', readme)
    times = re.search(r"two slots takes ([\d.]+) ms, .*? ([\d.]+) ms:", light.alt)
    assert times is not None
    for milliseconds in times.groups():
        assert f"{float(milliseconds):.1f} ms" in alt


def test_pictures_drawn_by_hand_follow_a_dark_theme_too():
    svg = text("solutions/lab1-residency/safetensors.svg")
    assert "prefers-color-scheme:dark" in svg
    assert not any("fill" in item.attrib for item in ElementTree.fromstring(svg).iter())
