"""Knobs and the stepper, as the kernel knows them; tests/browser tries the same in JupyterLab."""

import re
import sys

import pytest

from tests.views.examples import stream_layers
from xinfer_lab.device.records import Wait
from xinfer_lab.views.explorer import Knob, explore
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.stepper import moment, said, step_through

PICTURE = Picture("t", "<svg/>", "what it shows", ("a",), (("1",),))


def ask(explorer, number, chosen):
    explorer.asked = {"number": number, "chosen": chosen}
    return explorer.answer


def test_the_function_gets_the_values_of_the_options_and_its_answer_is_shown():
    explorer = explore(lambda model, slots: f"{model!r} {slots!r}", model=Knob("model", ["7b", "14b"]),
                       slots=Knob("slots", [2, 3, 4], start=3))  # fmt: skip
    assert explorer.answer["html"] == "<p>&#x27;7b&#x27; 3</p>"
    answer = ask(explorer, 7, [1, 2])
    assert answer == {"number": 7, "html": "<p>&#x27;14b&#x27; 4</p>"}
    assert explorer.chosen == [1, 2]


def test_numbers_make_a_slider_and_anything_else_a_list_each_with_its_label():
    explorer = explore(lambda **_: "x", a=Knob("tokens", [1, 16384]), b=Knob("GPU", ["x"]), c=Knob("ratio", [0.5, 1.0]),
                       d=Knob("ensure", [("wait",), ()], names=["wait", "nothing"]))  # fmt: skip
    assert explorer.controls == [
        {"label": "tokens", "kind": "slider", "options": ["1", "16,384"], "plays": False},
        {"label": "GPU", "kind": "list", "options": ["x"], "plays": False},
        {"label": "ratio", "kind": "slider", "options": ["0.5", "1"], "plays": False},
        {"label": "ensure", "kind": "list", "options": ["wait", "nothing"], "plays": False},
    ]


def test_words_and_pictures_are_shown_in_order_and_words_are_text():
    html = explore(lambda n: ["a < b\nc", PICTURE], n=Knob("n", [1])).answer["html"]
    assert html.startswith("<p>a &lt; b<br>c</p>") and 'alt="what it shows"' in html


def test_what_the_function_raises_is_shown_and_the_next_question_is_answered():
    explorer = explore(lambda n: f"{1 // n}", n=Knob("n", [1, 0]))
    assert "ZeroDivisionError" in ask(explorer, 1, [1])["html"]
    assert ask(explorer, 2, [0])["html"] == "<p>1</p>"


def test_a_notebook_stores_the_picture_and_no_widget():
    data = explore(lambda n: PICTURE, n=Knob("n < 2", [1]))._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"} and 'alt="what it shows"' in data["text/html"]
    assert "Run this cell to turn its knobs: n &lt; 2." in data["text/html"]


def test_where_each_output_is_a_page_of_its_own_the_widget_is_there_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", type(sys)("google.colab"))
    found = explore(lambda n: PICTURE, n=Knob("n", [1]))._repr_mimebundle_()
    data = found[0] if isinstance(found, tuple) else found
    assert "application/vnd.jupyter.widget-view+json" in data and 'alt="what it shows"' in data["text/html"]


def test_another_picture_than_the_first_may_be_stored():
    explorer = explore(lambda n: f"shows {n}", n=Knob("n", [0, 1, 2], stored=2))
    assert explorer.answer["html"] == "<p>shows 0</p>" and "<p>shows 2</p>" in explorer._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": []},
        {"options": [1], "start": 2},
        {"options": [1], "stored": 2},
        {"options": [1], "names": []},
        {"options": ["a"], "plays": True},
    ],
    ids=["none", "start", "stored", "names", "plays"],
)
def test_a_knob_that_cannot_be_turned_is_refused(wrong):
    with pytest.raises(ValueError, match="the knob 'k'"):
        Knob("k", **wrong)


def test_each_command_is_shown_with_the_timeline_and_the_slots_of_that_moment():
    example = stream_layers(layers=4, pool=2)
    explorer = step_through(example.stream, example.timeline, title="Four layers")
    (control,) = explorer.controls
    spoken = [said(record) for record in example.stream if said(record)]
    assert control["options"] == [str(n) for n in range(len(spoken) + 1)] and control["plays"]
    assert explorer.chosen == [0] and "Nothing was submitted yet." in explorer.answer["html"]
    assert f"Command {len(spoken)} of {len(spoken)}" in explorer._repr_mimebundle_()["text/html"]
    seen = [ask(explorer, n, [n + 1])["html"] for n in range(len(spoken))]
    assert all(f"Command {n + 1} of {len(spoken)}" in html for n, html in enumerate(seen))
    bars = [len(moment(example.stream, example.timeline, n, title="t")[0].table) for n in range(len(example.stream))]
    assert bars == sorted(bars) and bars[-1] == len(example.timeline.events)
    axes = {re.findall(r">(\d+(?: ms)?)</text>", moment(example.stream, example.timeline, n, title="t")[0].svg)[-1]
            for n in (5, len(example.stream) - 1)}  # fmt: skip
    assert len(axes) == 1, "the axis is the whole run's at every command"


def test_a_command_says_its_queue_its_fence_and_its_slot():
    stream = stream_layers(layers=4, pool=2).stream
    words = [said(record) for record in stream]
    assert any(re.search(r"^copy queue: .*layer 1.* into slot 1$", line) for line in words)
    assert any(re.search(r"^direct queue: .*layer 1.* from slot 1$", line) for line in words)
    wait = next(record for record in stream if isinstance(record, Wait))
    assert f"wait until {wait.fence} is {wait.value} or more" in said(wait)
    with pytest.raises(ValueError, match="no command"):
        step_through(stream, stream_layers(layers=4).timeline, title="t", first=10**6)
