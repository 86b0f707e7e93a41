"""What Lab 1's checks say to natural mistakes: the right cause, in the student's own terms."""

import pytest

from tests.answer_bank import Answer, answers, run
from tests.notebooks import SOLUTIONS, read, text
from xinfer_lab.grading import examine
from xinfer_lab.grading.report import WIDTH, Report


def bank(name: str) -> Answer:
    return next(answer for answer in answers("wrong") if answer.name == f"lab1/{name}")


def said(name: str, check: str) -> Report:
    answer = bank(name)
    return examine(f"lab1.{check}", run(answer)[answer.function])


def test_reading_from_the_end_is_not_taken_for_a_wrong_byte_order() -> None:
    report = said("read_header/wrong/no_seek_back", "read_header")
    assert report.misconception and report.misconception.name == "The file is read from its end"
    assert "file.seek(0)" in report.misconception.explanation


@pytest.mark.parametrize("answer", ["big_endian", "big_endian_unchecked"])
def test_a_wrong_byte_order_is_named_whether_or_not_n_was_checked(answer: str) -> None:
    for check in ("read_header", "refuse_header"):
        report = said(f"read_header/wrong/{answer}", check)
        assert report.misconception and "wrong order" in report.misconception.name


def test_hostile_observations_name_no_cause_and_never_raise() -> None:
    from xinfer_lab.grading.judges import judge_of
    from xinfer_lab.grading.piece import Case
    from xinfer_lab.grading.verify_values import verify_values

    case = Case("a file", {"file": {"claimed": 2, "text": b"{}", "size": 10}})
    for requests in (None, 7, [], [[]], [["a", 1]], [[1]], [None], "reads", {"a": 1}):
        observed = {"$": "dict", "items": [["requests", requests]]} if not isinstance(requests, dict) else 5
        data = {"schema": 1, "piece": "p", "defined": None, "outcomes": [{"returned": None, "observed": observed}]}
        assert not verify_values("p", judge_of("lab1.read_header"), [case], data).passed


def test_pairs_are_shown_as_the_tuples_that_were_asked_for() -> None:
    report = said("tensor_ranges/wrong/last_byte", "tensor_ranges")
    assert report.where and report.where.endswith("[1]")
    report = examine("lab1.tensor_ranges", lambda header, data_start, file_size: {})
    assert report.expected and report.expected.startswith("(")
    report = examine("lab1.read_header", lambda file: 8)
    assert report.expected and report.expected.startswith("({") and "a tuple was asked for" in report.headline


def test_a_list_in_place_of_a_tuple_is_still_right_and_an_extra_item_is_not() -> None:
    from xinfer_lab.grading.verify_values import equal, first_difference

    assert first_difference({"w": (1, 2)}, {"w": [1, 2]}) is None
    assert first_difference([(1, 2)], [[1, 2], [3, 4]]) is not None
    found = equal((1, (2, 3)), [1, 5], "pair")
    assert found is not None and found.expected == "(2, 3)"


@pytest.mark.parametrize("typed", ["20%", "27.6", 120, -1, [5]])
def test_a_prediction_in_another_form_is_told_the_form(typed: object) -> None:
    report = examine("lab1.predict_embedding", typed)
    assert "Type your prediction first" not in str(report) and report.expected == "a number from 0 to 100"
    assert ("without quotes" in str(report)) == isinstance(typed, str)


def test_a_small_letter_is_as_good_as_a_capital_and_nothing_is_told_to_be_typed() -> None:
    assert examine("lab1.predict_cache", " d").passed and not examine("lab1.predict_cache", "z").passed
    assert "Type your prediction first" in str(examine("lab1.predict_cache", None))


@pytest.mark.parametrize("check", ["layer_bytes", "read_header", "gate"])
def test_the_result_of_a_call_in_place_of_the_function_is_recognised(check: str) -> None:
    report = examine(f"lab1.{check}", 466_115_584)
    assert "This is not a function" in report.headline and "without calling it" in str(report)


def test_a_type_error_within_a_function_is_not_taken_for_a_missing_function() -> None:
    def broken(config: dict) -> int:
        return config["hidden_size"]()

    assert "TypeError" in examine("lab1.layer_bytes", broken).headline


def test_a_made_up_layer_is_not_called_a_published_model() -> None:
    report = examine("lab1.model_bytes", lambda config, bytes_per_layer: 1)
    assert report.where and "made-up layers" in report.where


def test_lines_of_a_report_fit_a_notebook_and_break_between_words() -> None:
    line = "return " + " + ".join(f"config['number_{index}']" for index in range(8))
    shown = str(Report("lab1.x", False, "No.", line=line)).splitlines()[1:]
    assert max(map(len, shown)) <= WIDTH + 16 <= 95
    assert " ".join(part.removeprefix("  your line:").strip() for part in shown) == line


def test_the_code_of_lab_1_fits_a_notebook_beside_the_file_browser() -> None:
    (lab,) = (path for path in SOLUTIONS if path.parent.name == "lab1-residency")
    for cell in read(lab)["cells"]:
        if cell["cell_type"] == "code":
            for line in text(cell).splitlines():
                assert len(line) <= 96, f"{cell['id']}: {line}"


def test_the_times_of_lab_1_add_up() -> None:
    import re

    (lab,) = (path for path in SOLUTIONS if path.parent.name == "lab1-residency")
    cells = [text(cell) for cell in read(lab)["cells"] if cell["cell_type"] == "markdown"]
    headings = [line for cell in cells for line in cell.splitlines() if line.startswith("## ")]
    minutes = {line: int(found[1]) for line in headings if (found := re.search(r"\((\d+) minutes", line))}
    tasks = [count for line, count in minutes.items() if "Task" in line]
    assert "seven short tasks (85 minutes)" in cells[0] and (len(tasks), sum(tasks)) == (7, 85)
    assert "(35 minutes)" in cells[0].replace("\n", " ") and sum(minutes.values()) == 120
