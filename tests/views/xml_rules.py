"""What every picture must keep to, checked on the parsed SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from xinfer_lab.views.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Picture) -> ET.Element:
    """The root of the picture, after the checks that hold for all of them."""
    root = ET.fromstring(picture.svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, description = root[0], root[1]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert not list(root.iter(f"{SVG}script")) and not re.search(r"\son\w+=", picture.svg)
    outside = re.findall(r"(?:https?:|//|data:|@import)[^\"'\s<]*", picture.svg)
    assert set(outside) <= {"http://www.w3.org/2000/svg"}, outside
    assert "href" not in picture.svg and "src=" not in picture.svg
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]*)\)", picture.svg)) <= set(ids)
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"<(title|desc|text)[^>]*>[^<]*", "", picture.svg))
    assert all(len(row) == len(picture.columns) for row in picture.table)
    return root


def words(root: ET.Element) -> list[str]:
    """Every line of text that the picture shows."""
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    """The elements that carry the class ``name``."""
    return [element for element in root.iter() if name in (element.get("class") or "").split()]
