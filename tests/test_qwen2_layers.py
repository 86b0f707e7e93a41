"""What the three functions write, what they leave alone, what they refuse."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layers import LayerSpec, decoder_layer, embed, layer_spec, lm_head, rms_norm
from xinfer_lab.qwen2.layout import tensor_shapes
from xinfer_lab.qwen2.synthetic import SyntheticSpec, synthetic_tensor

SPEC = SyntheticSpec(layers=1, hidden=32, heads=4, kv_heads=2, intermediate=48, vocab=40)
CONFIG = SPEC.config()
LAYER = layer_spec(CONFIG, 0)
WEIGHTS = {
    name: synthetic_tensor(name, shape, CONFIG, 0)
    for group in tensor_shapes(CONFIG).values()
    for name, shape in group.items()
}


def cache(capacity, batch, fill=math.nan):
    return [torch.full((capacity, batch, 2, 8), fill) for _ in range(2)]


def hidden_of(batch, tokens, seed=0):
    return torch.randn(batch, tokens, 32, generator=torch.Generator().manual_seed(seed))


def run(hidden, keys, values, position=0, spec=LAYER):
    with torch.inference_mode():
        out = hidden.clone()
        decoder_layer(out, WEIGHTS, keys, values, position, spec)
    return out


def test_embed_takes_rows_of_the_table():
    table = torch.randn(5, 3)
    out = torch.empty(2, 2, 3)
    embed(torch.tensor([[4, 0], [0, 2]]), table, out)
    assert torch.equal(out, table[[4, 0, 0, 2]].view(2, 2, 3))


def test_embed_refuses_an_output_that_does_not_fit():
    table, tokens = torch.randn(5, 3), torch.zeros(2, 2, dtype=torch.int64)
    for out in (torch.empty(2, 2, 4), torch.empty(2, 3, 3), torch.empty(2, 3, 2).transpose(1, 2)):
        with pytest.raises(ValueError, match=r"out must be contiguous of shape \(2, 2, 3\)"):
            embed(tokens, table, out)


def test_rms_norm_rounds_before_it_multiplies_by_the_weight():
    hidden, weight = hidden_of(1, 4).bfloat16(), torch.linspace(0.5, 1.5, 32).bfloat16()
    wide = hidden.float()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    assert torch.equal(rms_norm(hidden, weight, 1e-6), exact.bfloat16() * weight)
    assert not torch.equal(rms_norm(hidden, weight, 1e-6), (exact * weight.float()).bfloat16())


@pytest.mark.parametrize("positions", [1, 3, 5])
def test_lm_head_gives_the_last_positions(positions):
    hidden, norm, head = hidden_of(2, 5), torch.randn(32), torch.randn(7, 32)
    everything, last = torch.empty(2, 5, 7), torch.full((2, positions, 7), math.nan)
    lm_head(hidden, norm, head, everything, 1e-6)
    lm_head(hidden, norm, head, last, 1e-6)
    expected = rms_norm(hidden, norm, 1e-6) @ head.t()
    torch.testing.assert_close(everything, expected)
    torch.testing.assert_close(last, expected[:, -positions:])


@pytest.mark.parametrize(
    "out", [torch.empty(2, 6, 7), torch.empty(2, 0, 7), torch.empty(1, 1, 7), torch.empty(2, 1, 8), torch.empty(2, 7)]
)
def test_lm_head_refuses_an_output_that_does_not_fit(out):
    with pytest.raises(ValueError, match=r"out must have the shape \(2, 1 to 5, 7\)"):
        lm_head(hidden_of(2, 5), torch.randn(32), torch.randn(7, 32), out, 1e-6)
    with pytest.raises(ValueError, match="out must be contiguous"):
        lm_head(hidden_of(2, 5), torch.randn(32), torch.randn(7, 32), torch.empty(2, 7, 5).transpose(1, 2), 1e-6)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 6), st.integers(0, 3), st.none() | st.integers(1, 8))
def test_only_the_new_tokens_of_the_cache_are_written(batch, tokens, position, spare, window):
    spec = LayerSpec(**{**LAYER.to_dict(), "window": window})
    keys, values = cache(position + tokens + spare, batch)
    for tensor in (keys, values):
        tensor[:position] = torch.randn(position, batch, 2, 8)
    before = keys.clone(), values.clone()
    weights = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    out = run(hidden_of(batch, tokens), keys, values, position, spec)
    assert out.isfinite().all(), "nothing is read that was not written, NaN beyond the end included"
    for tensor, old in zip((keys, values), before, strict=True):
        assert torch.equal(tensor[:position], old[:position])
        assert tensor[position : position + tokens].isfinite().all()
        assert tensor[position + tokens :].isnan().all()
    assert all(torch.equal(weights[name], WEIGHTS[name]) for name in weights)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.data(), st.none() | st.integers(1, 9))
def test_no_token_sees_a_later_one_or_one_outside_its_window(tokens, data, window):
    spec = LayerSpec(**{**LAYER.to_dict(), "window": window})
    changed = data.draw(st.integers(0, tokens - 1))
    hidden = hidden_of(1, tokens)
    other = hidden.clone()
    other[:, changed] += 1.0
    first, second = (run(each, *cache(tokens, 1), spec=spec)[0] for each in (hidden, other))
    differs = [not torch.allclose(first[i], second[i], atol=1e-6) for i in range(tokens)]
    assert differs == [changed <= i < changed + (window or tokens) for i in range(tokens)]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(2, 9), st.data(), st.none() | st.integers(1, 9))
def test_chunks_give_what_the_whole_gives(batch, tokens, data, window):
    spec = LayerSpec(**{**LAYER.to_dict(), "window": window})
    cut = data.draw(st.integers(1, tokens - 1))
    hidden = hidden_of(batch, tokens)
    whole, parts = cache(tokens, batch), cache(tokens, batch)
    expected = run(hidden, *whole, spec=spec)
    got = torch.cat([run(hidden[:, :cut], *parts, 0, spec), run(hidden[:, cut:], *parts, cut, spec)], dim=1)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-4, atol=1e-5)


def test_sequences_of_a_batch_do_not_meet():
    hidden = hidden_of(2, 5)
    both = run(hidden, *cache(5, 2))
    for row in range(2):
        torch.testing.assert_close(run(hidden[row : row + 1], *cache(5, 1))[0], both[row], rtol=1e-4, atol=1e-5)


def test_positions_are_relative():
    """Rotary embedding: scores depend on distances, so the same tokens further along give the same output."""
    hidden = hidden_of(1, 6)
    spec = LayerSpec(**{**LAYER.to_dict(), "window": 1})
    near, far = run(hidden, *cache(6, 1), 0, spec), run(hidden, *cache(106, 1), 100, spec)
    torch.testing.assert_close(near, far, rtol=1e-3, atol=1e-4)
    keys, moved = cache(6, 1)[0], cache(106, 1)[0]
    run(hidden, keys, cache(6, 1)[1], 0, spec)
    run(hidden, moved, cache(106, 1)[1], 100, spec)
    scores, shifted = (torch.einsum("ihd,jhd->hij", k[:, 0], k[:, 0]) for k in (keys, moved[100:]))
    torch.testing.assert_close(scores, shifted, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(keys, moved[100:], atol=0.1)


def test_the_key_at_position_0_is_not_turned():
    hidden, (keys, values) = hidden_of(1, 3), cache(3, 1)
    run(hidden, keys, values)
    normed = rms_norm(hidden, WEIGHTS["input_layernorm.weight"], LAYER.rms_norm_eps)
    key = torch.nn.functional.linear(normed, WEIGHTS["self_attn.k_proj.weight"], WEIGHTS["self_attn.k_proj.bias"])
    key = key.view(3, 1, 2, 8)
    torch.testing.assert_close(keys[0], key[0])
    assert not torch.allclose(keys[1], key[1], atol=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_far_positions_are_exact_in_narrow_types(dtype):
    """4001 is no bf16 or fp16 number: angles are worked out in fp32."""
    exact, narrow = cache(4002, 1, 0.0), [tensor.to(dtype) for tensor in cache(4002, 1, 0.0)]
    hidden = hidden_of(1, 1)
    run(hidden, *exact, position=4001)
    decoder_layer(hidden.to(dtype), {name: tensor.to(dtype) for name, tensor in WEIGHTS.items()}, *narrow, 4001, LAYER)
    torch.testing.assert_close(narrow[0][4001].float(), exact[0][4001], rtol=0, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_same_call_gives_the_same_bytes(dtype):
    weights = {name: tensor.to(dtype) for name, tensor in WEIGHTS.items()}
    results = []
    for _ in range(2):
        hidden, keys, values = hidden_of(2, 7).to(dtype), *(tensor.to(dtype) for tensor in cache(9, 2))
        decoder_layer(hidden, weights, keys, values, 0, LAYER)
        results.append(hidden.view(torch.uint8))
    assert torch.equal(*results)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"capacity": 7}, "keys holds 7 tokens, but positions 3 to 7 are to be written"),
        ({"position": -1}, "positions -1 to 3"),
        ({"dtype": torch.float16}, "keys must be contiguous torch.float32"),
        ({"batch": 1}, r"of shape \[capacity, 2, 2, 8\], but is torch.float32 of shape \[8, 1, 2, 8\]"),
        ({"transposed": True}, "keys must be contiguous"),
    ],
)
def test_a_cache_that_does_not_fit_is_refused_before_anything_is_written(change, message):
    keys, values = (
        tensor.to(change.get("dtype", torch.float32))
        for tensor in cache(change.get("capacity", 8), change.get("batch", 2))
    )
    if change.get("transposed"):
        keys = torch.empty(2, 8, 2, 8).transpose(0, 1)
    hidden = hidden_of(2, 5)
    before = hidden.clone()
    with pytest.raises(ValueError, match=message):
        decoder_layer(hidden, WEIGHTS, keys, values, change.get("position", 3), LAYER)
    assert torch.equal(hidden, before)
    assert values.isnan().all()


def test_a_layer_spec_is_json():
    spec = layer_spec(PUBLISHED["7b"], 3)
    assert LayerSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert (spec.num_attention_heads, spec.num_key_value_heads, spec.head_dim, spec.window) == (28, 4, 128, None)
