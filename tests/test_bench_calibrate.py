"""What is worked out from a card's measurements, without a card."""

import dataclasses

import pytest

from xinfer_lab.bench.calibrate import flop_rates
from xinfer_lab.cli.layer_cost import layer_cost
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.qwen2.config import PUBLISHED

GAP = 3e-6
CONFIG = PUBLISHED["32b"]


def timed(tokens, plain, pairs):
    """A layer over ``tokens`` tokens on a card with these rates: its cost, and its seconds."""
    cost = dataclasses.replace(layer_cost(CONFIG, tokens), launches=47)
    spec = dataclasses.replace(GPU_SPECS["h200"], flops=plain, pair_flops=pairs, launch_time=0.0, launch_gap=GAP)
    return cost, spec.dispatch_time(cost)


@pytest.mark.parametrize("plain, pairs", [(600e12, 300e12), (600e12, 600e12), (500e12, 700e12)])
def test_the_rates_of_products_and_of_attention_are_told_apart(plain, pairs):
    found = flop_rates(timed(4096, plain, pairs), timed(16384, plain, pairs), GAP)
    assert found == pytest.approx((plain, pairs), rel=1e-6)


def test_with_both_rates_a_third_number_of_tokens_is_predicted():
    found = flop_rates(timed(4096, 600e12, 300e12), timed(16384, 600e12, 300e12), GAP)
    assert timed(8192, *found)[1] == pytest.approx(timed(8192, 600e12, 300e12)[1], rel=1e-6)


@pytest.mark.parametrize("faster", [1e-3, 3.0])
def test_measurements_that_contradict_each_other_give_one_rate_for_both(faster):
    # A layer of four times the tokens that takes less time, or one whose attention would take less than none.
    few, (cost, seconds) = timed(4096, 600e12, 300e12), timed(16384, 600e12, 300e12)
    plain, pairs = flop_rates(few, (cost, seconds / faster if faster > 1 else few[1] * faster), GAP)
    assert plain == pairs > 0
