import base64
import re
import xml.etree.ElementTree as ET

from xinfer_lab.views.picture import SHOWN_ROWS, Picture

PICTURE = Picture(
    title="A <title>",
    svg="<svg xmlns='http://www.w3.org/2000/svg'/>",
    alt='Says "much" & more.',
    columns=("a", "b|c"),
    table=(("1", "<i>"), ("2", "x|y")),
    notes=("A note.",),
)


def _parsed(html):
    # HTML leaves an image's tag open; XML wants it closed.
    return ET.fromstring("<div>" + html.replace('height:auto">', 'height:auto"/>') + "</div>")


def test_html_holds_image_note_and_table():
    root = _parsed(PICTURE._repr_html_())
    image = root.find(".//img")
    assert image.get("alt") == PICTURE.alt
    scheme, data = image.get("src").split(",")
    assert scheme == "data:image/svg+xml;base64" and base64.b64decode(data).decode() == PICTURE.svg
    assert root.find(".//figcaption/p").text == "A note."
    assert [th.text for th in root.findall(".//th")] == ["a", "b|c"]
    assert [[td.text for td in tr] for tr in root.findall(".//tbody/tr")] == [["1", "<i>"], ["2", "x|y"]]
    assert "A <title>" in root.find(".//details/summary").text


def test_html_asks_nothing_of_another_host_and_runs_nothing():
    html = PICTURE._repr_html_()
    assert "<script" not in html and not re.search(r"(src|href)=\"(?!data:)", html)


def test_a_long_table_is_cut_in_html_and_says_so():
    rows = tuple((str(i),) for i in range(SHOWN_ROWS + 7))
    html = Picture("t", "<svg/>", "alt", ("n",), rows).html()
    assert html.count("<tr>") == SHOWN_ROWS + 1 and "7 more rows" in html


def test_markdown_says_the_same_and_keeps_its_cells_apart():
    lines = PICTURE._repr_markdown_().splitlines()
    assert lines[0] == "**A &lt;title&gt;**"
    assert lines[-4:] == ["| a | b\\|c |", "| --- | --- |", "| 1 | &lt;i&gt; |", "| 2 | x\\|y |"]
    assert "A note." in lines


def test_as_text_it_is_words_not_markup():
    assert repr(PICTURE) == 'A <title>\nSays "much" & more.\nA note.'


def test_a_picture_without_a_table_has_no_details():
    assert "<details" not in Picture("t", "<svg/>", "alt", (), ()).html()


def test_save_writes_the_same_bytes_everywhere(tmp_path):
    PICTURE.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_bytes() == PICTURE.svg.encode()
