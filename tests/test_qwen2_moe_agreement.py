"""The forward pass agrees with transformers' Qwen2MoeForCausalLM on checkpoints that transformers wrote."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agreement import (
    STEPS,
    Case,
    assert_close,
    assert_decode_agrees,
    assert_every_position_agrees,
    assert_same_generation,
    saved_and_read,
    tokens_of,
)
from xinfer_lab.qwen2 import greedy, mixture

# transformers' faster ways with experts refuse sizes whose rows are no multiples of 16 bytes.
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
TOKENS = 17

CASES = [
    Case("grouped queries"),
    Case("weights that sum to 1", keys={"norm_topk_prob": True}),
    Case("multi-head, batch of three", batch=3, keys={"num_key_value_heads": 4}),
    Case("one expert a token", keys={"num_experts_per_tok": 1, "norm_topk_prob": True}),
    Case("all experts for each token", keys={"num_experts_per_tok": 6}),
    Case("experts in every second layer", keys={"decoder_sparse_step": 2}),
    Case("layers without experts", keys={"mlp_only_layers": [0, 2]}),
    Case("head_dim of its own", batch=2, keys={"head_dim": 24}),
    Case("sharded, tied", shard_bytes="40KB", keys={"tie_word_embeddings": True}),
    Case("sliding window", keys={
        "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    }),
    Case("bf16, sharded, all experts", torch.bfloat16, shard_bytes="20KB", keys={"num_experts_per_tok": 6}),
    Case("bf16, batch of two, all experts", torch.bfloat16, 2, keys={"num_experts_per_tok": 6, "norm_topk_prob": True}),
    Case("fp16, batch of two, all experts", torch.float16, 2, keys={"num_experts_per_tok": 6}),
]  # fmt: skip
CHOOSING = [
    Case("bf16", torch.bfloat16, shard_bytes="20KB"),
    Case("bf16, batch of two, weights that sum to 1", torch.bfloat16, 2, keys={"norm_topk_prob": True}),
    Case("fp16, batch of two", torch.float16, 2),
    Case("fp16, one expert a token", torch.float16, keys={"num_experts_per_tok": 1}),
]
"""In narrow types, where two experts may be as good as equal and rounding decides between them: then a whole token
differs. So here each half of a layer is compared on the same input, and a model by its distance from fp32."""


def make(directory, case):
    """(transformers' model as it reads the checkpoint back, ours with its cache empty)."""
    sizes = {
        "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "vocab_size": 160, "max_position_embeddings": 512, "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40,
    }  # fmt: skip
    config = transformers.Qwen2MoeConfig(dtype=case.dtype, **EAGER, **sizes | case.keys)
    return saved_and_read(directory, case, transformers.Qwen2MoeForCausalLM, config, TOKENS + STEPS, **EAGER)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    torch.manual_seed(0)
    directory = tmp_path_factory.mktemp("agreement")
    return {case: make(directory / str(number), case) for number, case in enumerate([*CASES, *CHOOSING])}


@pytest.mark.parametrize("chunks", [[TOKENS], [8, 5, 4], [5] + [1] * 12], ids=["whole", "chunks", "token by token"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_logits_of_every_position_agree(models, case, chunks):
    assert_every_position_agrees(*models[case], tokens_of(case, TOKENS), chunks)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_prefill_then_decode_agrees_and_chooses_the_same_tokens(models, case):
    assert_decode_agrees(*models[case], tokens_of(case, TOKENS))


@pytest.mark.parametrize("case", [case for case in CASES if case.dtype == torch.float32], ids=str)
def test_greedy_generation_gives_the_same_tokens(models, case):
    assert_same_generation(*models[case], tokens_of(case, TOKENS))


def mixed_by_hand(block, normed, config):
    """What our functions make of rows that are normed already, with the weights of transformers' block; and the experts
    that each row chose."""
    experts, dtype = block.experts, normed.dtype
    chosen = torch.empty(normed.shape[0] * config.num_experts_per_tok, dtype=torch.int64)
    rows, scores = torch.empty_like(chosen), torch.empty_like(chosen, dtype=dtype)
    again, mixed = torch.empty_like(normed), torch.empty_like(normed)
    # A norm that changes nothing: rows of mean square 1, a weight of 1.
    mixture.route(
        normed.unsqueeze(0), torch.ones(normed.shape[1], dtype=dtype), block.gate.weight, again, chosen, rows, scores,
        eps=1e-12, renormalise=config.norm_topk_prob,
    )  # fmt: skip
    shared = {f"mlp.shared_expert.{name}": tensor for name, tensor in block.shared_expert.named_parameters()}
    mixture.shared_expert(again, {**shared, "mlp.shared_expert_gate.weight": block.shared_expert_gate.weight}, mixed)
    for number, start, end in mixture.runs_of(chosen):
        gate, up = experts.gate_up_proj[number].chunk(2)
        weights = {"gate_proj.weight": gate, "up_proj.weight": up, "down_proj.weight": experts.down_proj[number]}
        mixture.expert(again, rows[start:end], scores[start:end], weights, mixed)
    by_row = [set(chosen[rows == row].tolist()) for row in range(normed.shape[0])]
    return again, mixed, by_row


@pytest.mark.parametrize("case", CHOOSING, ids=str)
def test_in_narrow_types_the_same_rows_choose_the_same_experts_and_get_the_same_mix(models, case):
    theirs, _ = models[case]
    generator = torch.Generator().manual_seed(2)
    for layer in theirs.model.layers:
        rows = torch.randn(23, 64, generator=generator)
        rows = (rows / rows.square().mean(-1, keepdim=True).sqrt()).to(case.dtype)
        with torch.inference_mode():
            normed, mixed, chosen = mixed_by_hand(layer.mlp, rows, theirs.config)
            _, _, expected = layer.mlp.gate(normed)
            assert chosen == [set(row) for row in expected.tolist()]
            assert len({frozenset(row) for row in chosen}) > 1
            assert_close(mixed, layer.mlp(normed.unsqueeze(0))[0])


def test_narrow_types_are_as_close_to_fp32_as_transformers_is(models):
    """Rounding differs in order, not in size: neither implementation is the less exact one."""
    own_distance, other_distance = [], []
    for case in [*CASES, *CHOOSING]:
        if case.dtype == torch.float32:
            continue
        theirs, ours = models[case]
        tokens = tokens_of(case, TOKENS)
        ours.reset()
        with torch.inference_mode():
            own, other = ours.forward(tokens, positions=TOKENS).float(), theirs(tokens).logits.float()
            exact = theirs.float()(tokens).logits
            theirs.to(case.dtype)
        # The median: a token that took another expert is far off on either side, and there are only a few of them.
        own_distance.append((own - exact).abs().amax(-1).median())
        other_distance.append((other - exact).abs().amax(-1).median())
    assert sum(own_distance) < 1.1 * sum(other_distance)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_random_models_agree(tmp_path_factory, data):
    draw = data.draw
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    experts = draw(st.integers(1, 9))
    keys = {
        "hidden_size": 8 * draw(st.integers(1, 5)), "head_dim": 2 * draw(st.integers(1, 6)),
        "num_hidden_layers": draw(st.integers(1, 3)), "num_attention_heads": kv_heads * group,
        "num_key_value_heads": kv_heads, "intermediate_size": draw(st.integers(3, 40)), "num_experts": experts,
        "num_experts_per_tok": draw(st.integers(1, experts)), "norm_topk_prob": draw(st.booleans()),
        "moe_intermediate_size": draw(st.integers(3, 30)), "decoder_sparse_step": draw(st.integers(1, 3)),
        "shared_expert_intermediate_size": draw(st.integers(3, 30)), "tie_word_embeddings": draw(st.booleans()),
        "mlp_only_layers": draw(st.lists(st.integers(0, 2), unique=True, max_size=2)),
    }  # fmt: skip
    case = Case("drawn", batch=draw(st.integers(1, 3)), keys=keys)
    torch.manual_seed(draw(st.integers(0, 9)))
    theirs, ours = make(tmp_path_factory.mktemp("drawn") / "model", case)
    tokens = tokens_of(case, TOKENS)
    cut = draw(st.integers(1, TOKENS - 1))
    logits = torch.cat([ours.forward(part, positions=part.shape[1]) for part in (tokens[:, :cut], tokens[:, cut:])], 1)
    with torch.inference_mode():
        expected = theirs(tokens).logits
    assert_close(logits, expected)
    assert torch.equal(greedy(logits[:, -1]), expected[:, -1].argmax(-1))
