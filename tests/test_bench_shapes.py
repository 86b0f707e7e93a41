"""The table of several sizes: a column a report, a line for each figure that some report has."""

import json

from tests.test_bench_targets import report, row
from xinfer_lab.bench.shapes import main, shapes_table

REPORT = report(
    row("resident", 2.0, card=1.5, predicted=1.9),
    row("resident", 5.0, "prefill 4096"),
    row("transformers, resident", 6.0, "prefill 4096", peer=True, difference=None),
    row("transformers, compiled", 2.5, peer=True, difference=0.2),
    row("streaming, 2 slots", 4.0, moved=200e9, link=50e9),
    row("compressed 3bit, 2 slots", 3.0, moved=140e9, link=50e9),
    row("planned, 11.18 GiB", 3.1, bound=3.0),
    row("compressed 3bit, 11.18 GiB", 2.0, bound=2.0),
)


def test_each_figure_is_what_its_rows_say():
    table = dict((line[0], line[1:]) for line in shapes_table({"7b": REPORT, "small": report(row("resident", 1.0))}))
    assert table["decode step"] == ["7b", "small"]
    assert table["resident"] == ["2.00 s", "1.00 s"]
    assert table["resident over compiled"] == ["0.800", ""]
    assert table["the card, by bytes and FLOPs"] == ["1.50 s", ""]
    assert table["resident prefill over transformers, eager"] == ["0.833", ""]
    assert table["streaming, 2 slots: bytes a second over the link"] == ["1.000", ""]
    assert table["3-bit codes, 2 slots: plain bytes a second over the link"] == ["1.333", ""]
    assert table["within a budget: time over the bound, the worst"] == ["1.033", ""]
    assert table["predicted over measured, all rows"] == ["0.950 to 0.950", ""]
    assert table["max abs diff, all rows"] == ["0", "0"], "a peer's difference is its own"
    assert "transformers, eager" not in table, "no report has it"


def test_reports_are_named_by_their_folders_and_a_row_that_differs_is_an_error(tmp_path, capsys):
    wrong = report(row("resident", 2.0), row("streaming, 2 slots", 4.0, moved=200e9, difference=0.1))
    paths = []
    for name, made in (("7b", REPORT), ("1.5b", wrong)):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "report.json")
        paths[-1].write_text(json.dumps(made.to_dict()))
    assert main([str(paths[0])]) == 0
    assert capsys.readouterr().out.startswith("| decode step | 7b |\n| --- | --- |\n")
    assert main([str(path) for path in (*paths, tmp_path / "none.json")]) == 1
    assert "| max abs diff, all rows | 0 | 0.1 |" in capsys.readouterr().out
