"""What the functions are said to cost is what they do."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tests.memory import peak_on_cpu
from xinfer_lab.qwen2.attention import RECENT_GPU, DeviceTraits, traits_of
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.costs import attention_pairs, decoder_layer_work, embed_work, lm_head_work
from xinfer_lab.qwen2.layers import decoder_layer, embed, layer_spec, lm_head
from xinfer_lab.qwen2.layout import layer_layout, tensor_shapes

CPU = DeviceTraits("cpu")
CONFIG = replace(
    PUBLISHED["0.5b"],
    hidden_size=256,
    num_attention_heads=8,
    head_dim=32,
    intermediate_size=640,
    vocab_size=512,
    num_hidden_layers=1,
)
"""Large enough that the workspace's fixed part does not hide the rest."""
ONEDNN = 72 * 1024
"""Its scratch memory for one thread, seen in bf16 products of few rows; `costs` leaves it out and says so."""
SHAPES = [(1, 1, 0), (1, 1, 700), (2, 1, 90), (1, 200, 0), (2, 60, 300), (3, 64, 0)]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def shapes_of(config):
    return {"hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size, "dtype": config.dtype}


def layer_call(config, batch, tokens, position, device="cpu"):
    weights = {
        name: torch.randn(shape, device=device).mul_(0.05).to(config.dtype)
        for group in tensor_shapes(config).values()
        for name, shape in group.items()
    }
    hidden = torch.randn(batch, tokens, config.hidden_size, device=device).to(config.dtype)
    keys, values = (
        torch.zeros(
            position + tokens, batch, config.num_key_value_heads, config.head_dim, device=device, dtype=config.dtype
        )
        for _ in range(2)
    )
    return lambda: decoder_layer(hidden, weights, keys, values, position, layer_spec(config, 0))


def layer_work(config, batch, tokens, position, traits=CPU):
    return decoder_layer_work(
        layer_spec(config, 0), batch=batch, tokens=tokens, position=position, traits=traits, **shapes_of(config)
    )


def counted(call):
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


@given(st.integers(1, 30), st.integers(0, 30), st.none() | st.integers(1, 40))
def test_visible_pairs_are_counted_one_by_one(tokens, position, window):
    expected = sum(
        1
        for query in range(position, position + tokens)
        for key in range(query + 1)
        if window is None or key > query - window
    )
    assert attention_pairs(tokens, position, window) == expected


@pytest.mark.parametrize("batch, position", [(1, 0), (3, 50)])
def test_flops_of_a_decode_step_are_those_that_torch_counts(batch, position):
    assert layer_work(CONFIG, batch, 1, position).flops == counted(layer_call(CONFIG, batch, 1, position))


def test_flops_of_a_chunk_leave_out_what_the_mask_hides():
    work, batch, tokens, position = layer_work(CONFIG, 2, 20, 30), 2, 20, 30
    hidden_pairs = tokens * (position + tokens) - attention_pairs(tokens, position, None)
    hidden = 4 * batch * CONFIG.num_attention_heads * CONFIG.head_dim * hidden_pairs
    assert work.flops + hidden == counted(layer_call(CONFIG, batch, tokens, position))


def test_what_attention_spends_on_pairs_is_a_part_of_the_flops_and_grows_with_them_alone():
    work, double = (layer_work(CONFIG, 2, 20, position) for position in (30, 60))
    assert double.flops - work.flops == double.pair_flops - work.pair_flops > 0
    pairs = attention_pairs(20, 30, None)
    assert work.pair_flops == 4 * 2 * CONFIG.num_attention_heads * CONFIG.head_dim * pairs


def test_a_decode_step_of_a_large_model_computes_two_flops_a_weight():
    config = PUBLISHED["7b"]
    work = layer_work(config, 1, 1, 0, RECENT_GPU)
    weights = layer_layout(config).weight_nbytes
    assert work.flops == pytest.approx(weights, rel=1e-3)  # 2 FLOPs a weight, 2 bytes a weight
    assert work.bytes_read == pytest.approx(weights, rel=1e-3)


def test_bytes_are_weights_hidden_states_and_cache():
    work = layer_work(CONFIG, 2, 3, 10)
    hidden, token = 2 * 3 * 256 * 2, CONFIG.num_key_value_heads * CONFIG.head_dim * 2
    assert work.bytes_read == layer_layout(CONFIG).weight_nbytes + hidden + 2 * 2 * 13 * token
    assert work.bytes_written == hidden + 2 * 2 * 3 * token
    window = replace(CONFIG, sliding_window=4)
    assert layer_work(window, 2, 3, 10).bytes_read == work.bytes_read - 2 * 2 * 7 * token


def test_embed_and_head():
    embedding = embed_work(batch=2, tokens=3, hidden_size=256, dtype=torch.bfloat16)
    assert (embedding.flops, embedding.bytes_read, embedding.bytes_written) == (0, 6 * 8 + 6 * 512, 6 * 512)
    hidden, head, norm = torch.randn(2, 3, 256), torch.randn(512, 256), torch.randn(256)
    out = torch.empty(2, 1, 512)
    work = lm_head_work(batch=2, positions=1, hidden_size=256, vocab_size=512, dtype=torch.float32)
    assert work.flops == counted(lambda: lm_head(hidden, norm, head, out, 1e-6))
    assert work.bytes_read == 4 * (512 * 256 + 256 + 2 * 256)
    assert work.bytes_written == 4 * 2 * 512


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 50])
@pytest.mark.parametrize("batch, tokens, position", SHAPES)
def test_a_layer_stays_within_its_workspace_and_nearly_fills_it(dtype, window, batch, tokens, position):
    config = replace(CONFIG, dtype=dtype, sliding_window=window)
    peak = peak_on_cpu(layer_call(config, batch, tokens, position))
    bound = layer_work(config, batch, tokens, position).workspace
    assert peak <= bound + ONEDNN
    assert bound <= 2.5 * peak + 64 * 1024


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_embed_and_head_stay_within_their_workspace(dtype):
    tokens, table = torch.arange(400).view(2, 200), torch.randn(512, 256).to(dtype)
    hidden, norm = torch.empty(2, 200, 256, dtype=dtype), torch.randn(256).to(dtype)
    assert (
        peak_on_cpu(lambda: embed(tokens, table, hidden))
        <= embed_work(batch=2, tokens=200, hidden_size=256, dtype=dtype).workspace
    )
    for positions in (1, 200):
        out = torch.empty(2, positions, 512, dtype=dtype)
        peak = peak_on_cpu(lambda out=out: lm_head(hidden, norm, table, out, 1e-6))
        bound = lm_head_work(batch=2, positions=positions, hidden_size=256, vocab_size=512, dtype=dtype).workspace
        assert peak <= bound + ONEDNN
        assert bound <= 2.5 * peak + 64 * 1024


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 50])
@pytest.mark.parametrize("batch, tokens, position", [*SHAPES, (1, 1, 8000), (1, 1024, 0), (2, 512, 3000)])
@pytest.mark.parametrize("size", ["0.5b", "7b"])
def test_a_layer_stays_within_its_workspace_on_a_gpu(dtype, window, batch, tokens, position, size):
    config = replace(PUBLISHED[size], dtype=dtype, sliding_window=window)
    call = layer_call(config, batch, tokens, position, "cuda")
    with torch.inference_mode():
        call()  # cuBLAS allocates its own workspace once
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()["requested_bytes.all.current"]
        call()
        torch.cuda.synchronize()
    peak = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before
    bound = layer_work(config, batch, tokens, position, traits_of(torch.device("cuda"))).workspace
    assert peak <= bound <= 3 * peak + 1024 * 1024
