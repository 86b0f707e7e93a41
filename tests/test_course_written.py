"""Written answers by question: the rubric, equal texts once, and points that stay until the answer changes."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.classes import LAB, SmallClass, remembered
from tests.marking import hand_in, notebook
from tests.notebooks import SOLUTIONS
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.written import Answer, answers_to, give, questions_of
from xinfer_lab.course.written_server import WrittenServer

ROOT = SOLUTIONS[0].parents[2]


@pytest.mark.parametrize("source", SOLUTIONS, ids=lambda path: path.parent.name)
def test_each_labs_rubric_is_read_and_gives_all_points(source: Path) -> None:
    (question,) = questions_of(find_lab(ROOT, source.parent.name), source)
    assert sum(item.points for item in question.rubric) == question.points
    assert all(len(item.what) > 10 for item in question.rubric) and "Marking" not in question.model
    assert question.text and "SOLUTION" not in question.model


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    made = SmallClass(tmp_path_factory.mktemp("class"))
    for student, text in {"ada": "Because.", "bob": "Because.\n", "eve": "It streams."}.items():
        made.submit(student, notebook(hand_in({"written": text})))
    made.submit("cut-off", "{")
    with remembered() as worker:
        made.mark(worker)
    return made


@pytest.fixture
def course(marked: SmallClass, tmp_path: Path) -> SmallClass:
    return marked.copy(tmp_path / "course")


def answers(course: SmallClass) -> list[Answer]:
    (question,) = questions_of(course.lab(), course.root / "solutions" / LAB / "lab.ipynb")
    return answers_to(question, course.book(), course.lab())


def test_equal_texts_are_one_answer_and_what_was_not_marked_is_none(course: SmallClass) -> None:
    assert [(one.students, one.text, one.waiting) for one in answers(course)] == [
        (("ada", "bob"), "Because.", True),
        (("eve",), "It streams.", True),
    ]


def test_only_an_answer_that_changed_is_asked_for_again(course: SmallClass) -> None:
    (question,) = questions_of(course.lab(), course.root / "solutions" / LAB / "lab.ipynb")
    give(question, course.book(), course.lab(), ["ada", "bob", "eve"], 2.0, "Say why.")
    course.submit("bob", notebook(hand_in({"written": "Because it streams."})))
    with remembered() as worker:
        course.mark(worker, again=True)
    found = {student: one for one in answers(course) for student in one.students}
    assert {student: one.waiting for student, one in found.items()} == {"bob": True, "ada": False, "eve": False}
    assert (found["eve"].points, found["eve"].comment) == (2.0, "Say why.")
    with pytest.raises(ValueError, match="4 points were given; written has 0 to 3"):
        give(question, course.book(), course.lab(), ["ada"], 4.0, "")


@pytest.fixture
def server(course: SmallClass) -> Iterator[WrittenServer]:
    questions = questions_of(course.lab(), course.root / "solutions" / LAB / "lab.ipynb")
    with WrittenServer(course.book(), course.lab(), questions) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(address: str, body: object = None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data)) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_points_are_given_on_the_page_and_nobody_is_named(server: WrittenServer) -> None:
    status, page = ask(server.address)
    assert status == 200 and "Written answers" in page
    listed = json.loads(ask(server.address + "answers?question=written")[1])["answers"]
    assert [one["students"] for one in listed] == [2, 1] and "ada" not in json.dumps(listed)
    body = {"question": "written", "answer": 0, "text": "Because.", "points": 1.5, "comment": "Why?"}
    assert ask(server.address + "give", body) == (200, '{"given": 2}')
    assert "has changed" in ask(server.address + "give", {**body, "text": "another"})[1]
    assert ask(server.address + "give", {**body, "points": 99})[0] == 400
    listed = json.loads(ask(server.address + "answers?question=written")[1])["answers"]
    assert [(one["text"], one["waiting"], one["points"]) for one in listed][1] == ("Because.", False, 1.5)


def test_whoever_does_not_know_the_address_gets_nothing(server: WrittenServer) -> None:
    base = server.address.replace(server.token, "guess")
    assert ask(base)[0] == 404 and ask(base + "give", {})[0] == 404
    request = urllib.request.Request(server.address, headers={"Host": "evil.example:80"})
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)
    raised.value.close()
    assert raised.value.code == 404
