"""An answer's text: what was written, with what it needs to be imported alone; or why it cannot be kept."""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines import written
from xinfer_lab.grading.source_of import NotKept, source_of


def test_a_kept_answer_is_what_was_written_with_the_helpers_constants_and_imports_that_it_uses() -> None:
    cell = (
        "import math as m\nfrom collections import deque\n\nSTEP = 256\nUNUSED = 1\n\n\n"
        "def round_up(n):  # a helper\n    return -(-n // STEP) * STEP\n\n\n"
        "def answer(n):\n    # my own words\n    todo = deque([n])\n    return m.floor(round_up(todo.pop()))\n"
    )
    text = source_of(written(cell, "answer"))
    assert "# my own words" in text and "# a helper" in text and "UNUSED" not in text
    space: dict[str, Any] = {}
    exec(text, space)
    assert space["answer"](257) == 512


def test_a_class_is_kept_with_its_base_and_recursion_ends() -> None:
    cell = (
        "class Base:\n    def even(self, n):\n        return n == 0 or odd(n - 1)\n\n\n"
        "def odd(n):\n    return n != 0 and Mine().even(n - 1)\n\n\n"
        "class Mine(Base):\n    WORD = 'mine'\n\n    def three(self):\n        return self.even(4), self.WORD\n"
    )
    space: dict[str, Any] = {}
    exec(source_of(written(cell, "Mine")), space)
    assert space["Mine"]().three() == (True, "mine")


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("rows = {1: object()}\ndef answer():\n    return rows\n", "it uses rows, a dict that only the notebook holds"),
        ("answer = 3\n", "a function or a class can be kept, not a int"),
        ("answer = lambda: 3\n", "the text of <lambda> is not to be found"),
    ],
)
def test_what_only_the_notebook_holds_is_not_kept_and_it_is_said_why(cell: str, why: str) -> None:
    with pytest.raises(NotKept, match=why):
        source_of(written(cell, "answer"))


def run(text: str) -> dict[str, Any]:
    """What the module ``text`` defines."""
    names: dict[str, Any] = {"__name__": "part"}
    exec(compile(text, "<part>", "exec", dont_inherit=True), names)
    return names


def test_helpers_may_be_aliases_cached_and_classes_without_a_method_of_their_own() -> None:
    cell = (
        "from dataclasses import dataclass\nfrom functools import cache\nfrom typing import NamedTuple\n\n\n"
        "@dataclass\nclass Range:\n    start: int\n    end: int = 7\n\n\n"
        "class Pair(NamedTuple):\n    a: int\n\n\nclass Full(Exception):\n    pass\n\n\n"
        "@cache\ndef twice(n):\n    return 2 * n\n\n\ndouble = twice\n\n\n"
        "def answer(n):\n    if n < 0:\n        raise Full\n    return double(Range(n).end) + Pair(1).a\n"
    )
    names = run(source_of(written(cell, "answer")))
    assert names["answer"](3) == 15
    with pytest.raises(names["Full"]):
        names["answer"](-1)


def test_a_decorated_answer_is_kept_with_its_decorator() -> None:
    cell = "from functools import lru_cache\n\n\n@lru_cache(maxsize=3)\ndef answer(n):\n    return n + 1\n"
    text = source_of(written(cell, "answer"))
    assert "@lru_cache(maxsize=3)" in text and run(text)["answer"](1) == 2


def test_constants_by_dtype_and_text_in_any_script_are_kept() -> None:
    cell = (
        "import torch\n\nSIZES = {torch.float32: 4, torch.bfloat16: 2}\nWORD = 'Größe 層 \\ud800'\n\n\n"
        "def answer(größe):\n    # 層を数える\n    return SIZES[größe], WORD\n"
    )
    text = source_of(written(cell, "answer"))
    import torch

    assert "層を数える" in text and run(text)["answer"](torch.bfloat16) == (2, "Größe 層 \ud800")


def test_an_answer_below_a_condition_or_a_line_magic_is_found() -> None:
    assert run(source_of(written("if True:\n    def answer():\n        return 3\n", "answer")))["answer"]() == 3
    cell = "%matplotlib inline\ndef answer():\n    return 4\n"
    place = "<a cell with a magic>"
    linecache.cache[place] = (len(cell), None, cell.splitlines(keepends=True), place)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell.replace("%matplotlib inline", ""), place, "exec"), names)
    assert run(source_of(names["answer"]))["answer"]() == 4


def test_what_stands_in_a_file_beside_the_notebook_is_copied_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`%%writefile mine.py`, then an import: the engine is used where that file is not."""
    (tmp_path / "mine_beside.py").write_text(
        "import math\n\nSTEP = 4\n\n\ndef helper(n):\n    return math.ceil(n / STEP)\n\n\n"
        "def answer(n):\n    return helper(n)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = importlib.import_module("mine_beside")
    for answer in (mine.answer, written("def answer(n):\n    return helper(n)\n", "answer", helper=mine.helper)):
        text = source_of(answer)
        assert "mine_beside" not in text and run(text)["answer"](9) == 3
    whole = written("def answer(n):\n    return mine_beside.helper(n)\n", "answer", mine_beside=mine)
    with pytest.raises(NotKept, match=r"a file of your own beside the notebook: .* from mine_beside import \.\.\.$"):
        source_of(whole)
    del sys.modules["mine_beside"]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("def make():\n    seen = []\n    def answer():\n        return seen\n    return answer\nanswer = make()\n",
         "answer uses seen of the function around it"),
        ("class answer:\n    def one(self):\n        return 1\ndef two(self):\n    return 2\nanswer.two = two\n",
         "answer got its method two from outside: write it inside the class"),
        ("START = []\nSTART.append(START)\ndef answer():\n    return START\n",
         "it uses START, a list that only the notebook holds"),
        ("class answer:\n    rows = rows\n    def one(self):\n        return 1\n",
         "its text cannot be run on its own: NameError: name 'rows' is not defined"),
    ],
)  # fmt: skip
def test_an_answer_that_would_not_run_alone_is_not_kept(cell: str, why: str) -> None:
    answer = written("rows = 3\n" + cell, "answer")
    if "rows" in cell:
        del answer.one.__globals__["rows"]
    with pytest.raises(NotKept, match=why):
        source_of(answer)


def test_a_text_that_a_magic_hides_is_not_found_and_it_is_said() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("def answer():\n    return 1\n", "<timed exec>", "exec"), names)
    with pytest.raises(NotKept, match="below no magic such as %%time"):
        source_of(names["answer"])
