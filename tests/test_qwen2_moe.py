"""Models with experts: config, layout, what a made-up checkpoint holds, and what the maths writes."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tests.memory import peak_on_cpu
from xinfer_lab.qwen2 import (
    Checkpoint,
    CheckpointError,
    ConfigError,
    ExpertsConfig,
    Qwen2Config,
    SyntheticSpec,
    expert_layout,
    layer_layout,
    mixture,
    write_checkpoint,
)
from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.mixture_costs import combine_work, expert_work, route_work, shared_expert_work

GOOD = {
    "model_type": "qwen2_moe", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
    "max_position_embeddings": 512, "torch_dtype": "bfloat16", "num_experts": 6, "num_experts_per_tok": 2,
    "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40,
}  # fmt: skip
SPEC = SyntheticSpec(layers=2, hidden=16, heads=2, kv_heads=1, intermediate=24, vocab=256, experts=3)


# Config


def test_every_field_is_taken_from_the_file():
    config = Qwen2Config.from_dict(GOOD | {"norm_topk_prob": True, "decoder_sparse_step": 2, "mlp_only_layers": [3]})
    assert config.experts == ExpertsConfig(
        num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=40,
        norm_topk_prob=True, decoder_sparse_step=2, mlp_only_layers=(3,),
    )  # fmt: skip
    assert [config.has_experts(layer) for layer in range(4)] == [False, True, False, False]


def test_what_may_be_left_out_is_what_was_published_with():
    config = Qwen2Config.from_dict(GOOD)
    assert [config.has_experts(layer) for layer in range(4)] == [True] * 4
    assert config.experts is not None and not config.experts.norm_topk_prob


def test_a_dense_model_has_no_experts_whatever_its_config_says_beside():
    config = Qwen2Config.from_dict(GOOD | {"model_type": "qwen2"})
    assert config.experts is None and not config.has_experts(0)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_experts": None}, "num_experts is null"),
        ({"num_experts": 0}, "num_experts must be greater than 0, but is 0"),
        ({"num_experts_per_tok": 7}, "num_experts_per_tok must be at most num_experts"),
        ({"num_experts_per_tok": 0}, "num_experts_per_tok must be greater than 0"),
        ({"moe_intermediate_size": 0}, "moe_intermediate_size must be greater than 0"),
        ({"shared_expert_intermediate_size": 0}, "shared_expert_intermediate_size must be greater than 0"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step must be greater than 0"),
        ({"mlp_only_layers": 3}, "mlp_only_layers must be a list of whole numbers, but is 3"),
        ({"mlp_only_layers": ["0"]}, "mlp_only_layers must be a list of whole numbers"),
        ({"norm_topk_prob": 1}, "norm_topk_prob must be true or false"),
        ({"qkv_bias": False}, "qkv_bias must be left out or true"),
        ({"use_sliding_window": True, "sliding_window": 8}, "must state layer_types"),
        ({"hidden_act": "gelu"}, "hidden_act"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Qwen2Config.from_dict(GOOD | change, "here/config.json")
    assert str(caught.value).startswith("here/config.json: ")


CONFIGS = st.builds(
    lambda experts, per_token, wide, renormalise, step, only, window: replace(
        Qwen2Config.from_dict(GOOD),
        experts=ExpertsConfig(
            num_experts=experts, num_experts_per_tok=min(experts, per_token), moe_intermediate_size=wide,
            shared_expert_intermediate_size=2 * wide, norm_topk_prob=renormalise, decoder_sparse_step=step,
            mlp_only_layers=tuple(only),
        ),
        sliding_window=window,
        layer_types=None if window is None else ("sliding_attention", "full_attention") * 2,
    ),
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.booleans(), st.integers(1, 3),
    st.lists(st.integers(0, 3), unique=True), st.none() | st.integers(1, 99),
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(CONFIGS)
def test_the_config_survives_our_files_and_those_of_transformers(config):
    assert Qwen2Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    theirs = transformers.Qwen2MoeConfig(**config.to_dict())
    again = Qwen2Config.from_dict(json.loads(theirs.to_json_string(use_diff=False)))
    assert [again.window(layer) for layer in range(4)] == [config.window(layer) for layer in range(4)]
    kept = {"layer_types": None, "max_window_layers": 0, "sliding_window": None}
    assert replace(again, **kept) == replace(config, **kept)


# Layout and checkpoints


def test_a_published_expert_has_the_published_bytes():
    """Qwen1.5-MoE-A2.7B: hidden 2048, 60 experts of 1408, a shared expert of 5632."""
    config = replace(
        Qwen2Config.from_dict(GOOD), hidden_size=2048, num_attention_heads=16, num_key_value_heads=16, head_dim=128,
        experts=ExpertsConfig(
            num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632
        ),
    )  # fmt: skip
    assert expert_layout(config).weight_nbytes == 3 * 2048 * 1408 * 2 == 17_301_504
    attention = 4 * 2048 * 2048 + 3 * 2048 + 2048
    mixture_bytes = 2048 + 60 * 2048 + 3 * 2048 * 5632 + 2048
    assert layer_layout(config, 0).weight_nbytes == 2 * (attention + mixture_bytes)


def test_what_asks_for_the_layout_of_all_layers_alike_is_refused():
    with pytest.raises(ConfigError, match="6 experts in a layer"):
        layer_layout(Qwen2Config.from_dict(GOOD))
    with pytest.raises(ConfigError, match="no experts"):
        expert_layout(Qwen2Config.from_dict(GOOD | {"model_type": "qwen2"}))


@pytest.mark.parametrize(
    "spec", [SPEC, replace(SPEC, shards=5, dtype="bfloat16", tied=True), replace(SPEC, experts=1, experts_per_token=1)]
)
def test_our_reader_and_theirs_read_what_was_made_up(tmp_path, spec):
    directory = write_checkpoint(tmp_path / "model", spec)
    with Checkpoint.open(directory) as checkpoint:
        assert checkpoint.config == spec.config()
        ours = {name: checkpoint.tensor(name).clone() for name in checkpoint.names()}
    assert set(ours) == set(expected_shapes(spec.config()))
    model, report = transformers.Qwen2MoeForCausalLM.from_pretrained(directory, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    mine = spec.config().experts
    block = model.model.layers[1].mlp
    assert block.gate.top_k == mine.num_experts_per_tok
    for number in range(mine.num_experts):
        prefix = f"model.layers.1.mlp.experts.{number}."
        gate_up = torch.cat([ours[f"{prefix}gate_proj.weight"], ours[f"{prefix}up_proj.weight"]])
        assert torch.equal(block.experts.gate_up_proj[number].to(gate_up.dtype), gate_up)
        assert torch.equal(block.experts.down_proj[number].to(gate_up.dtype), ours[f"{prefix}down_proj.weight"])
    again = model.state_dict()["model.layers.0.mlp.shared_expert_gate.weight"]
    assert torch.equal(again.to(gate_up.dtype), ours["model.layers.0.mlp.shared_expert_gate.weight"])


def test_a_checkpoint_with_an_expert_missing_or_too_many_is_refused(tmp_path):
    directory = write_checkpoint(tmp_path / "model", SPEC)
    config = json.loads((directory / "config.json").read_text())
    for count, message in ((4, r"experts\.3\.gate_proj\.weight is missing|shape \[4, 16\]"), (2, "shape|no part")):
        (directory / "config.json").write_text(json.dumps(config | {"num_experts": count}))
        with pytest.raises(CheckpointError, match=message):
            Checkpoint.open(directory)


def test_experts_share_no_weights_and_keep_the_scale_of_what_they_are_given(tmp_path):
    with Checkpoint.open(write_checkpoint(tmp_path / "model", replace(SPEC, hidden=64, intermediate=128))) as opened:
        downs = [opened.tensor(f"model.layers.{i}.mlp.experts.{e}.down_proj.weight") for i in (0, 1) for e in range(3)]
    assert not any(torch.equal(a, b) for i, a in enumerate(downs) for b in downs[:i])
    for down in downs:
        assert down.std() == pytest.approx(0.5 / 64**0.5, rel=0.1)  # residual / sqrt(fan-in): 1 / sqrt(2 layers), 64


# Maths


def routed(hidden, gate, per_row, renormalise=False):
    rows = hidden.shape[0] * hidden.shape[1]
    normed = torch.empty(rows, hidden.shape[2], dtype=hidden.dtype)
    experts, where = (torch.empty(rows * per_row, dtype=torch.int64) for _ in range(2))
    scores = torch.empty(rows * per_row, dtype=hidden.dtype)
    norm = torch.ones(hidden.shape[2], dtype=hidden.dtype)
    mixture.route(hidden, norm, gate, normed, experts, where, scores, eps=1e-6, renormalise=renormalise)
    return normed, experts, where, scores


@given(
    batch=st.integers(1, 3), tokens=st.integers(1, 6), count=st.integers(1, 9), data=st.data(), seed=st.integers(0, 99)
)
def test_choices_are_the_likeliest_experts_of_each_row_sorted_by_expert_then_row(batch, tokens, count, data, seed):
    per_row, renormalise = data.draw(st.integers(1, count)), data.draw(st.booleans())
    generator = torch.Generator().manual_seed(seed)
    hidden, gate = torch.randn(batch, tokens, 8, generator=generator), torch.randn(count, 8, generator=generator)
    normed, experts, rows, scores = routed(hidden, gate, per_row, renormalise)
    probabilities = torch.softmax((normed @ gate.t()).double(), -1)
    pairs = list(zip(experts.tolist(), rows.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert Counter(rows.tolist()) == dict.fromkeys(range(batch * tokens), per_row)
    for row in range(batch * tokens):
        mine = rows == row
        chosen, given_scores = experts[mine], scores[mine].double()
        least = probabilities[row, chosen].min()
        assert (probabilities[row] > least + 1e-6).sum() <= per_row
        expected = probabilities[row, chosen]
        expected = expected / expected.sum() if renormalise else expected
        torch.testing.assert_close(given_scores, expected, rtol=1e-5, atol=1e-6)
    runs = list(mixture.runs_of(experts))
    assert [pairs[start][0] for _, start, _ in runs] == [number for number, _, _ in runs]
    assert [start for _, start, _ in runs] + [len(pairs)] == [0, *(end for _, _, end in runs)]


def test_an_expert_adds_to_its_own_rows_alone():
    normed, mixed = torch.randn(5, 8), torch.zeros(5, 8)
    weights = {"gate_proj.weight": torch.randn(6, 8), "up_proj.weight": torch.randn(6, 8)}
    weights["down_proj.weight"] = torch.randn(8, 6)
    mixture.expert(normed, torch.tensor([3, 1]), torch.tensor([0.5, 2.0]), weights, mixed)
    gate, up, down = weights.values()
    expected = (torch.nn.functional.silu(normed @ gate.t()) * (normed @ up.t())) @ down.t()
    torch.testing.assert_close(mixed[[3, 1]], expected[[3, 1]] * torch.tensor([[0.5], [2.0]]))
    assert not mixed[[0, 2, 4]].any()


# Costs


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 40, 400])
def test_the_functions_cost_what_is_said_of_them(rows, dtype):
    torch.set_num_threads(1)
    hidden, size, wide, count, per_row = torch.randn(1, rows, 128).to(dtype), 128, 192, 60, 4
    gate = torch.randn(count, size).to(dtype)
    normed, experts, where, scores = routed(hidden, gate, per_row)
    mixed, norm = torch.zeros_like(normed), torch.ones(size, dtype=dtype)
    mlp = {"gate_proj.weight": torch.randn(wide, size), "up_proj.weight": torch.randn(wide, size)}
    mlp = {name: tensor.to(dtype) for name, tensor in {**mlp, "down_proj.weight": torch.randn(size, wide)}.items()}
    shared = {f"mlp.shared_expert.{name}": tensor for name, tensor in mlp.items()}
    shared["mlp.shared_expert_gate.weight"] = gate[:1]
    every = torch.arange(rows)
    kwargs = {"rows": rows, "hidden_size": size, "dtype": dtype}

    def route():
        mixture.route(hidden, norm, gate, normed, experts, where, scores, eps=1e-6, renormalise=True)

    calls = [
        (route, route_work(**kwargs, experts=count, per_row=per_row)),
        (lambda: mixture.shared_expert(normed, shared, mixed), shared_expert_work(**kwargs, intermediate_size=wide)),
        (
            lambda: mixture.expert(normed, every, scores[:rows], mlp, mixed),
            expert_work(**kwargs, intermediate_size=wide),
        ),
        (lambda: mixture.combine(mixed, hidden), combine_work(**kwargs)),
    ]
    for call, work in calls:
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            call()
        assert counter.get_total_flops() == work.flops
        peak = peak_on_cpu(call)
        assert peak <= work.workspace + 72 * 1024  # oneDNN's own
        assert work.workspace <= 3 * peak + 64 * 1024
