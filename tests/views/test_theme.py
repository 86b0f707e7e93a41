import re

import pytest

from xinfer_lab.views.svg import ID
from xinfer_lab.views.theme import DARK, LIGHT, PATTERNS, definitions, slot_look, stylesheet


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, two):
    """The contrast ratio of WCAG 2.2."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _colours(sheet, selector):
    rule = re.search(re.escape(f"#{ID} {selector}{{") + "([^}]*)}", sheet).group(1)
    return dict(pair.split(":") for pair in rule.split(";"))


def test_colour_and_pattern_together_tell_64_slots_apart():
    looks = [slot_look(slot) for slot in range(64)]
    assert len(set(looks)) == 64


def test_the_first_slots_differ_in_pattern_and_in_colour():
    colours, patterns = zip(*(slot_look(slot) for slot in range(8)), strict=True)
    assert len(set(colours)) == len(set(patterns)) == 8


def test_patterns_are_all_different():
    assert len(set(PATTERNS)) == len(PATTERNS)


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_text_can_be_read_on_everything_it_stands_on(name, theme):
    sheet = stylesheet(name, range(8))
    for slot in range(8):
        assert contrast(theme.ink, _colours(sheet, f".s{slot}")["fill"]) >= 7
    assert contrast(theme.ink, theme.paper) >= 7 and contrast(theme.ink, theme.plain) >= 7
    for ground in (theme.paper, theme.band):
        assert contrast(theme.muted, ground) >= 4.5
        assert contrast(theme.hazard, ground) >= 4.5
    assert contrast(theme.hazard_ink, theme.hazard) >= 4.5


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_lines_stand_out_from_the_paper(name, theme):
    sheet = stylesheet(name, range(8))
    for slot in range(8):
        assert contrast(_colours(sheet, f".k{slot}")["stroke"], _colours(sheet, f".s{slot}")["fill"]) >= 1.6
    assert contrast(theme.memory_line, theme.paper) >= 3 and contrast(theme.plain_line, theme.paper) >= 3


def test_the_auto_theme_is_light_and_turns_dark_with_the_reader():
    auto = stylesheet("auto", [0])
    light, dark = auto.split("@media (prefers-color-scheme:dark){")
    assert light == stylesheet("light", [0])
    assert DARK.paper in dark and LIGHT.paper not in dark


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match="'light', 'dark' or 'auto', not 'sepia'"):
        stylesheet("sepia")


def test_each_slot_shown_has_its_pattern():
    assert [f'id="{ID}-slot{slot}"' in definitions([0, 5]) for slot in (0, 1, 5)] == [True, False, True]


def test_rules_reach_nothing_outside_the_picture():
    bare = re.sub(r"@media \([^)]*\)", "", stylesheet("auto", range(3)))
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", bare)
    assert selectors and all(selector.startswith(f"#{ID} ") for selector in selectors)
