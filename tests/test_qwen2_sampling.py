"""Choosing the next token."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.qwen2.sampling import greedy, sample

LOGITS = torch.tensor([0.5, 0.2, 0.2, 0.1]).log().unsqueeze(0)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draws(count=4000, **options):
    tokens = sample(
        LOGITS.expand(count, -1), temperature=options.pop("temperature", 1.0), generator=generator(), **options
    )
    return (torch.bincount(tokens, minlength=4) / count).tolist()


def test_greedy_takes_the_most_likely_and_of_equals_the_lowest_id():
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 1.0, 2.0], [-math.inf, -1.0, -math.inf]])
    assert greedy(logits).tolist() == [1, 0, 1]
    assert greedy(logits.bfloat16()).dtype == torch.int64


def test_samples_follow_the_softmax():
    assert draws() == pytest.approx([0.5, 0.2, 0.2, 0.1], abs=0.03)


def test_temperature_divides_the_logits():
    squared = torch.tensor([0.25, 0.04, 0.04, 0.01])
    assert draws(temperature=0.5) == pytest.approx((squared / squared.sum()).tolist(), abs=0.03)


@pytest.mark.parametrize("temperature", [1e-40, 5e-324])
def test_a_temperature_near_0_gives_the_most_likely(temperature):
    assert draws(temperature=temperature) == [1, 0, 0, 0]
    assert draws(temperature=1e308) == pytest.approx([0.25] * 4, abs=0.03)


@pytest.mark.parametrize("values", [[math.inf, 0.0], [-math.inf, -math.inf]])
def test_no_token_is_drawn_where_the_largest_logit_is_infinite(values):
    with pytest.raises(ValueError, match="infinite"):
        sample(torch.tensor([values]), temperature=1.0, generator=generator())


def test_top_k_keeps_the_k_most_likely_and_of_equals_the_lower_ids():
    assert draws(top_k=2) == pytest.approx([5 / 7, 2 / 7, 0, 0], abs=0.03)
    assert draws(top_k=99) == draws()


def test_top_p_keeps_the_fewest_that_reach_p_and_always_one():
    assert draws(top_p=0.6) == pytest.approx([5 / 7, 2 / 7, 0, 0], abs=0.03)
    assert draws(top_p=0.05) == [1, 0, 0, 0]
    assert draws(top_p=1.0) == draws()
    assert draws(top_p=5e-324) == [1, 0, 0, 0]


def test_top_p_counts_what_top_k_left():
    assert draws(top_k=2, top_p=0.7) == [1, 0, 0, 0]


@settings(deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(1, 3),
    st.integers(1, 40),
    st.floats(0.1, 3.0),
    st.none() | st.integers(1, 50),
    st.none() | st.floats(0.01, 1.0),
)
def test_a_token_is_one_of_the_kept_and_the_seed_decides(seed, batch, vocab, temperature, top_k, top_p):
    logits = torch.randn(batch, vocab, generator=generator(seed)).half()
    before = logits.clone()
    first, second = (
        sample(logits, temperature=temperature, top_k=top_k, top_p=top_p, generator=generator(seed)) for _ in range(2)
    )
    assert torch.equal(first, second) and torch.equal(logits, before)
    assert first.shape == (batch,)
    rank = (logits > logits.gather(1, first.unsqueeze(1))).sum(1)
    assert (rank < (top_k or vocab)).all()


def test_a_top_k_of_one_is_greedy():
    logits = torch.randn(20, 30, generator=generator())
    assert torch.equal(sample(logits, temperature=5.0, top_k=1, generator=generator()), greedy(logits))


def test_randomness_comes_from_the_generator_alone():
    state = torch.random.get_rng_state()
    draws()
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"temperature": 0.0}, "temperature must be greater than 0, but is 0.0.*greedy"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_k": 0}, "top_k must be at least 1, but is 0"),
        ({"top_p": 0.0}, "top_p must be greater than 0 and at most 1, but is 0.0"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_p": math.nan}, "top_p"),
    ],
)
def test_arguments_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        sample(LOGITS, **{"temperature": 1.0, "generator": generator(), **options})


@pytest.mark.parametrize(
    "logits, message",
    [
        (torch.tensor([[0.0, math.nan]]), "NaN"),
        (torch.zeros(3), r"\[batch, vocabulary\], but have \[3\]"),
        (torch.zeros(1, 0), r"\[1, 0\]"),
    ],
)
def test_logits_that_decide_nothing_are_refused(logits, message):
    with pytest.raises(ValueError, match=message):
        greedy(logits)
    with pytest.raises(ValueError, match=message):
        sample(logits, temperature=1.0, generator=generator())


def test_a_generator_on_another_device_is_refused():
    with pytest.raises(ValueError, match="generator must be on meta, where the logits are, but is on cpu"):
        sample(torch.zeros(1, 4, device="meta"), temperature=1.0, generator=generator())
