import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.views.svg import ID, document, element, escape, fit, number, sentence, text, text_width


@given(st.text())
def test_any_text_survives_as_xml(words):
    parsed = ET.fromstring(element("text", escape(words), title=words))
    readable = "".join(
        c if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue001" <= c <= "\ufffd" or c > "\uffff" else "\ufffd"
        for c in words
    )
    # XML readers turn line ends into newlines, and any white space in attributes into spaces.
    assert parsed.text in (None, readable.replace("\r\n", "\n").replace("\r", "\n"))
    assert parsed.text is not None or not words


def test_markup_in_words_stays_words():
    assert text(0, 0, "<script>&\"'") == '<text x="0" y="0">&lt;script&gt;&amp;&quot;&#x27;</text>'


@pytest.mark.parametrize(
    ("value", "shown"), [(12.0, "12"), (0.126, "0.13"), (-0.001, "0"), (1e-9, "0"), (100.0, "100"), (2.50, "2.5")]
)
def test_numbers_are_short(value, shown):
    assert number(value) == shown


def test_attributes_that_are_none_are_left_out():
    assert element("rect", class_=None, stroke_width=1.5) == '<rect stroke-width="1.5"/>'


def test_parts_of_the_picture_are_named_and_referred_to():
    assert element("g", id="clip", fill_url="slot3") == f'<g id="{ID}-clip" fill="url(#{ID}-slot3)"/>'


def test_the_first_form_that_fits_is_taken():
    assert fit(("upload layer 3", "layer 3", "L3"), text_width("layer 3", 14) + 0.1, 14) == "layer 3"
    assert fit(("upload layer 3", "layer 3", "L3"), 500, 14) == "upload layer 3"


def test_what_fits_in_no_form_is_cut_or_dropped():
    cut = fit(("a very long label indeed",), text_width("a very long", 14), 14)
    assert (
        cut.endswith("…")
        and "a very long label".startswith(cut[:-1])
        and text_width(cut, 14) <= text_width("a very long", 14)
    )
    assert fit(("a very long label",), 20, 14) == ""
    assert fit((), 100, 14) == "" and fit(("x",), -5, 14) == ""


@given(st.lists(st.text(max_size=50), max_size=3), st.floats(-10, 400), st.sampled_from([11.0, 14.0]))
def test_what_is_fitted_fits(forms, width, size):
    shown = fit(forms, width, size)
    assert not shown or text_width(shown, size) <= width


def test_ids_come_from_the_content():
    def draw(body):
        return document(body, width=1, height=1, title="t", description="d", style="", definitions="")

    assert draw("<g/>") == draw("<g/>")
    assert ET.fromstring(draw("<g/>")).get("id") != ET.fromstring(draw("<g></g>")).get("id")
    assert ID not in draw(f'<g id="{ID}-a"/>')


def test_a_sentence_ends_once():
    assert [sentence(s) for s in ("a", "a.", "a?")] == ["a.", "a.", "a?"]
