import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.xml_rules import of_class, parsed, words
from xinfer_lab.views.residency_bars import ResidencyBar, residency_bars
from xinfer_lab.views.svg import text_width

GIB = 2**30
RESIDENT = ResidencyBar("all resident", {"embedding": GIB, "layers": 12 * GIB, "KV cache": GIB // 2})
STREAMED = ResidencyBar("3 slots", {"embedding": GIB, "slots": 3 * GIB // 2, "KV cache": GIB // 2})


def test_alt_text_says_totals_and_verdicts():
    picture = residency_bars([RESIDENT, STREAMED], title="Where do the bytes go?", budgets={"laptop": 8 * GIB})
    assert picture.alt == (
        "Where do the bytes go? "
        "all resident takes 13.50 GiB (embedding 1.00 GiB, layers 12.00 GiB, KV cache 512.00 MiB); "
        "over laptop by 5.50 GiB. "
        "3 slots takes 3.00 GiB (embedding 1.00 GiB, slots 1.50 GiB, KV cache 512.00 MiB); fits laptop (5.00 GiB free)."
    )


def test_the_table_has_every_part_and_the_totals():
    picture = residency_bars([RESIDENT, STREAMED], title="t", budgets={"laptop": 8 * GIB})
    assert [row[:2] + row[3:4] for row in picture.table] == [
        (bar.name, part, str(size))
        for bar in (RESIDENT, STREAMED)
        for part, size in [*bar.parts.items(), ("total", bar.total)]
    ]
    assert picture.table[3][-1] == "over laptop by 5.50 GiB"


def test_lengths_are_in_proportion_and_parts_lie_end_to_end():
    bars = (
        of_class(parsed(residency_bars([STREAMED], title="t")), "s0")[1:],
        *(of_class(parsed(residency_bars([STREAMED], title="t")), f"s{i}")[1:] for i in (1, 2)),
    )
    (a,), (b,), (c,) = bars
    assert float(b.get("width")) == pytest.approx(1.5 * float(a.get("width")), abs=0.02)
    assert float(c.get("width")) == pytest.approx(0.5 * float(a.get("width")), abs=0.02)
    assert float(b.get("x")) == pytest.approx(float(a.get("x")) + float(a.get("width")), abs=0.02)


def test_a_part_has_the_same_look_in_every_bar():
    root = parsed(residency_bars([RESIDENT, STREAMED], title="t"))
    # The key and a piece of both bars; slots and layers appear once each beside the key.
    assert [len(of_class(root, f"s{i}")) for i in range(4)] == [3, 2, 3, 2]


def test_what_is_over_the_only_budget_is_framed():
    over = parsed(residency_bars([RESIDENT], title="t", budgets={"laptop": 8 * GIB}))
    fits = parsed(residency_bars([STREAMED], title="t", budgets={"laptop": 8 * GIB}))
    between = parsed(residency_bars([RESIDENT], title="t", budgets={"laptop": 8 * GIB, "RTX 4090": 24 * GIB}))
    assert [len(of_class(root, "hazard")) for root in (over, fits, between)] == [1, 0, 0]
    assert len(of_class(between, "budget")) == 2 and "laptop: 8.00 GiB" in words(between)


def test_no_bars_and_empty_bars_can_be_drawn():
    parsed(residency_bars([], title="t"))
    picture = residency_bars([ResidencyBar("nothing", {})], title="t", budgets={"none": 0})
    parsed(picture)
    assert "nothing takes 0 B (nothing); fits none (0 B free)." in picture.alt


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="slots of plan has -1 bytes"):
        residency_bars([ResidencyBar("plan", {"slots": -1})], title="t")


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.text(max_size=9), st.dictionaries(st.text(max_size=9), st.integers(0, 2**45), max_size=5)),
        max_size=4,
    ),
    st.dictionaries(st.text(max_size=9), st.integers(0, 2**45), max_size=3),
    st.integers(320, 1200),
)
def test_any_plan_gives_a_sound_picture(plans, budgets, width):
    bars = [ResidencyBar(name, parts) for name, parts in plans]
    picture = residency_bars(bars, title="t", budgets=budgets, width=width)
    parsed(picture)
    assert sum(int(row[3]) for row in picture.table if row[1] != "total") >= 0
    assert [int(row[3]) for row in picture.table] == [n for bar in bars for n in [*bar.parts.values(), bar.total]]


def test_a_budget_whose_name_says_its_size_says_it_once():
    root = parsed(residency_bars([STREAMED], title="t", budgets={"a card of 8 GiB": 8 * GIB}))
    assert "a card of 8 GiB" in words(root) and "8.00 GiB" not in words(root)


def test_no_budget_runs_through_a_total_and_no_label_is_cut():
    bar = ResidencyBar("slots", {"slots": 7 * GIB, "embedding, norm, head": GIB // 2})
    root = parsed(residency_bars([bar], title="t", budgets={"card": 8 * GIB}))
    line = float(of_class(root, "budget")[0].get("d").partition(",")[0].removeprefix("M"))
    (total,) = (item for item in root.iter() if item.text == "7.50 GiB")
    assert float(total.get("x")) > line
    assert not any("…" in (item.text or "") for item in root.iter())


def test_no_budget_s_line_runs_through_a_part_s_words():
    picture = residency_bars([RESIDENT], title="t", budgets={"laptop": 6 * GIB, "card": 7 * GIB})
    lines = [float(line.get("d").split(",")[0][1:]) for line in of_class(parsed(picture), "budget")]
    label = next(t for t in parsed(picture).iter("{http://www.w3.org/2000/svg}text") if "layers 12" in (t.text or ""))
    half = text_width(label.text, 13.0) / 2
    assert not any(abs(float(label.get("x")) - line) < half for line in lines)
