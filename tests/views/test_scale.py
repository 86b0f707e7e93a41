import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.views.scale import TimeScale, byte_ticks, format_share, format_time, round_step, time_unit


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (1e-9, "1.00 ns"),
        (1.5e-10, "0.150 ns"),
        (1.234e-3, "1.23 ms"),
        (0.0123, "12.3 ms"),
        (0.999e-3, "999 µs"),
        (0.9999e-3, "1.00 ms"),
        (1000.0, "1000 s"),
        (1234.4, "1234 s"),
        (-2e-6, "-2.00 µs"),
        (59.96, "60.0 s"),
    ],
)
def test_times_have_three_digits(seconds, shown):
    assert format_time(seconds) == shown


@given(st.floats(1e-12, 1e6))
def test_a_shown_time_is_the_time(seconds):
    value, unit = format_time(seconds).split(" ")
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert math.isclose(float(value) * scale, seconds, rel_tol=0.006, abs_tol=1e-15)


def test_a_share_of_nothing_is_nothing():
    assert format_share(1, 3) == "33 %" and format_share(1, 0) == "0 %"


def test_the_unit_fits_the_span():
    assert [time_unit(x).name for x in (0, 5, 0.5, 1e-3, 2e-5, 1e-8, 1e-12)] == ["s", "s", "ms", "ms", "µs", "ns", "ns"]


@given(st.floats(1e-12, 1e9), st.integers(1, 40))
def test_a_step_is_round_and_makes_few_enough_parts(span, most):
    step = round_step(span, most)
    assert step * most >= span * (1 - 1e-6)
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(math.isclose(mantissa, m) for m in (1, 2, 5, 10))


@given(st.integers(0, 2**50), st.integers(1, 12))
def test_byte_ticks_start_at_zero_and_stay_below_the_top(top, most):
    ticks = byte_ticks(top, most)
    assert ticks[0] == 0 and ticks[-1] <= top and len(ticks) <= most + 1
    assert len({b - a for a, b in pairwise(ticks)}) <= 1


@given(st.floats(0, 1e3), st.floats(1e-9, 1e3), st.integers(1, 20))
def test_ticks_lie_on_the_axis_in_order_and_differ_in_words(start, span, most):
    scale = TimeScale(start, start + span, 100, 800)
    if scale.span < start * 1e-9:
        return
    ticks = scale.ticks(most)
    assert all(100 - 1e-3 <= scale.x(at) <= 900 + 1e-3 for at, _ in ticks)
    assert [at for at, _ in ticks] == sorted({at for at, _ in ticks})
    assert len(ticks) <= most + 1
    labels = [label.split(" ")[0] for _, label in ticks]
    assert len(set(labels)) == len(labels)
    assert all(" " in label for _, label in ticks[:1]) and all(" " not in label for _, label in ticks[1:])


def test_an_axis_without_a_span_puts_everything_at_its_left():
    scale = TimeScale(0, 0, 10, 100)
    assert scale.x(0) == 10 and scale.ticks(5) == [(0, "0 s")]


@pytest.mark.parametrize("ends", [(0, math.inf), (0, math.nan), (2, 1)])
def test_an_impossible_axis_is_refused(ends):
    with pytest.raises(ValueError, match="finite seconds with start <= end"):
        TimeScale(*ends, 0, 1)
