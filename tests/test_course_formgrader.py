"""What the browser's tests of Formgrader rest on: nbgrader's templates hold no other script than the policy knows."""

from __future__ import annotations

import re
from pathlib import Path

import nbgrader
from jinja2 import DictLoader, Environment

from xinfer_lab.course import formgrader

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"


def test_every_handler_in_nbgraders_templates_is_known_to_the_policy() -> None:
    found = set()
    for path in TEMPLATES.rglob("*.*"):
        found |= set(re.findall(r"\son\w+=\"([^\"]*)\"", path.read_text(encoding="utf-8"), re.IGNORECASE))
    assert found == set(formgrader.HANDLERS)


def test_scripts_of_templates_have_the_nonce_and_what_is_filled_in_has_none() -> None:
    environment = Environment(loader=DictLoader({"page": "<script src=a></script><SCRIPT>b</SCRIPT>{{ theirs }}"}))
    formgrader._with_nonces(environment)
    policies, pages = [], []
    for _ in range(2):
        policies.append(formgrader._policy())
        pages.append(environment.get_template("page").render(theirs="<script nonce='{{ csp_nonce() }}'>1</script>"))
    for policy, page in zip(policies, pages, strict=True):
        (nonce,) = re.findall(r"'nonce-([\w-]{20,})'", policy)
        assert page.count(nonce) == 2 and page.endswith("<script nonce='{{ csp_nonce() }}'>1</script>")
    assert policies[0] != policies[1], "each response has its own"


def test_a_process_without_formgrader_is_left_alone() -> None:
    formgrader.protect()
