"""The rule that pins the attention backend, and that each plan computes attention."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.qwen2 import attention
from xinfer_lab.qwen2.attention import RECENT_GPU, AttentionPlan, DeviceTraits, attend, plan_attention, traits_of

CPU = DeviceTraits("cpu")
TURING = DeviceTraits("cuda")
HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    "traits, dtype, head_dim, tokens, position, window, backend, masking",
    [
        (CPU, SINGLE, 64, 1, 9, None, "math", "none"),
        (CPU, BRAIN, 64, 5, 0, None, "math", "causal"),
        (CPU, SINGLE, 64, 5, 9, None, "math", "explicit"),
        (RECENT_GPU, BRAIN, 128, 1, 9, None, "flash", "none"),
        (RECENT_GPU, HALF, 128, 5, 0, None, "flash", "causal"),
        (RECENT_GPU, BRAIN, 128, 5, 9, None, "efficient", "explicit"),
        (RECENT_GPU, BRAIN, 128, 5, 0, 4, "efficient", "explicit"),
        (RECENT_GPU, BRAIN, 128, 5, 0, 5, "flash", "causal"),
        (RECENT_GPU, BRAIN, 128, 1, 9, 4, "flash", "none"),
        (RECENT_GPU, SINGLE, 128, 5, 0, None, "efficient", "causal"),
        (RECENT_GPU, SINGLE, 128, 1, 9, None, "efficient", "none"),
        (RECENT_GPU, SINGLE, 128, 5, 9, None, "efficient", "explicit"),
        (RECENT_GPU, BRAIN, 12, 5, 0, None, "math", "causal"),
        (RECENT_GPU, BRAIN, 264, 5, 0, None, "math", "causal"),
        (TURING, HALF, 128, 5, 0, None, "efficient", "causal"),
        (TURING, BRAIN, 128, 5, 0, None, "math", "causal"),
        (DeviceTraits("mps"), HALF, 128, 5, 0, None, "math", "causal"),
    ],
)
def test_the_rule(traits, dtype, head_dim, tokens, position, window, backend, masking):
    plan = plan_attention(traits, dtype, head_dim, tokens, position, window)
    assert (plan.backend, plan.masking) == (backend, masking)


def test_keys_outside_every_window_are_not_read():
    assert plan_attention(CPU, SINGLE, 64, 1, 9, 4) == AttentionPlan("math", "none", 6, 10)
    assert plan_attention(CPU, SINGLE, 64, 3, 9, 4) == AttentionPlan("math", "explicit", 6, 12)
    assert plan_attention(CPU, SINGLE, 64, 3, 2, 9) == AttentionPlan("math", "explicit", 0, 5)


def test_the_traits_of_the_host():
    assert traits_of(torch.device("cpu")) == CPU


def plain(queries, keys, values, position, window):
    """Attention as the formula has it, head by head, in fp64."""
    batch, tokens, heads, head_dim = queries.shape
    group = heads // keys.shape[2]
    out = torch.empty(batch, tokens, heads, head_dim, dtype=torch.float64)
    for b in range(batch):
        for t in range(tokens):
            last = position + t
            seen = slice(0 if window is None else max(0, last - window + 1), last + 1)
            for h in range(heads):
                k, v = keys[seen, b, h // group].double(), values[seen, b, h // group].double()
                weights = (k @ queries[b, t, h].double() / math.sqrt(head_dim)).softmax(0)
                out[b, t, h] = weights @ v
    return out.view(batch, tokens, heads * head_dim)


SHAPES = dict(
    batch=st.integers(1, 2),
    tokens=st.integers(1, 5),
    position=st.integers(0, 5),
    kv=st.integers(1, 3),
    group=st.integers(1, 3),
    window=st.none() | st.integers(1, 6),
    seed=st.integers(0, 99),
)


def operands(batch, tokens, position, kv, group, seed, device="cpu", dtype=torch.float32, head_dim=8):
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(batch, tokens, kv * group, head_dim, generator=generator).to(device, dtype)
    keys, values = (
        torch.randn(position + tokens + 2, batch, kv, head_dim, generator=generator).to(device, dtype) for _ in range(2)
    )
    for tensor in (keys, values):
        tensor[position + tokens :] = math.nan
    return queries, keys, values


@settings(deadline=None, max_examples=60)
@given(**SHAPES)
def test_attention_is_the_formula(batch, tokens, position, kv, group, window, seed):
    queries, keys, values = operands(batch, tokens, position, kv, group, seed)
    out = attend(queries, keys, values, position, window)
    assert out.is_contiguous()
    torch.testing.assert_close(out.double(), plain(queries, keys, values, position, window), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("traits", [RECENT_GPU, TURING])
@settings(deadline=None, max_examples=40)
@given(half=st.booleans(), **SHAPES)
def test_the_operands_for_a_gpu_mean_the_same(traits, half, batch, tokens, position, kv, group, window, seed):
    """The arrangement of operands for the fused backends, computed by the math backend on the CPU."""
    queries, keys, values = operands(batch, tokens, position, kv, group, seed)
    expected = plain(queries, keys, values, position, window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "traits_of", lambda device: traits)
        patch.setattr(attention, "_BACKENDS", dict.fromkeys(attention._BACKENDS, attention.SDPBackend.MATH))
        if half:  # the rule for fp16 applied to fp32 operands, so that the comparison stays sharp
            patch.setattr(attention, "plan_attention", lambda traits, dtype, *rest: plan_attention(traits, HALF, *rest))
        out = attend(queries, keys, values, position, window)
    assert out.is_contiguous()
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("traits", [CPU, RECENT_GPU, TURING])
@pytest.mark.parametrize("tokens, position", [(1, 6), (5, 0), (3, 4)])
def test_no_key_is_copied_or_repeated_on_the_way_to_the_backend(monkeypatch, traits, tokens, position):
    queries, keys, values = operands(2, tokens, position, 2, 3, 0)
    seen = []
    real = attention.scaled_dot_product_attention

    def spy(query, key, value, **options):
        seen.append((key, value))
        # Only fused backends share a head by a stride of 0; the math backend would write the repetition out.
        assert (key.stride(1) == 0) == (traits.kind == "cuda" and tokens > 1)
        return real(query, key, value, **options)

    monkeypatch.setattr(attention, "traits_of", lambda device: traits)
    monkeypatch.setattr(attention, "_BACKENDS", dict.fromkeys(attention._BACKENDS, attention.SDPBackend.MATH))
    monkeypatch.setattr(attention, "scaled_dot_product_attention", spy)
    attend(queries, keys, values, position, None)
    ((key, value),) = seen
    assert (key.data_ptr(), value.data_ptr()) == (keys.data_ptr(), values.data_ptr())


def test_the_backend_of_the_plan_is_the_only_one_allowed(monkeypatch):
    allowed = []
    real = attention.sdpa_kernel
    monkeypatch.setattr(attention, "sdpa_kernel", lambda backend: allowed.append(backend) or real(backend))
    attend(*operands(1, 3, 0, 1, 2, 0), 0, None)
    assert allowed == [torch.nn.attention.SDPBackend.MATH]


@pytest.mark.cuda
@pytest.mark.parametrize("dtype, limit", [(SINGLE, 2e-5), (HALF, 2e-3), (BRAIN, 1.6e-2)])
@pytest.mark.parametrize(
    "tokens, position, window",
    [(1, 0, None), (1, 40, None), (1, 40, 9), (33, 0, None), (33, 7, None), (33, 0, 9), (33, 40, 9), (2, 31, 100)],
)
@pytest.mark.parametrize("kv, group, head_dim", [(2, 1, 64), (1, 7, 64), (2, 4, 128), (2, 2, 24), (2, 2, 6)])
def test_a_gpu_computes_the_formula_twice_alike(dtype, limit, tokens, position, window, kv, group, head_dim):
    queries, keys, values = operands(2, tokens, position, kv, group, 0, "cuda", dtype, head_dim)
    out = attend(queries, keys, values, position, window)
    expected = plain(queries.cpu(), keys.cpu(), values.cpu(), position, window)
    assert (out.cpu().double() - expected).abs().max() <= limit * expected.abs().max()
    assert torch.equal(out.view(torch.uint8), attend(queries, keys, values, position, window).view(torch.uint8))
