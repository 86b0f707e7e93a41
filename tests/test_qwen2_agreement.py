"""The forward pass agrees with transformers' Qwen2ForCausalLM on checkpoints that transformers wrote."""

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

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
from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, SyntheticSpec, write_checkpoint

TOKENS = 21

CASES = [
    Case("grouped queries"),
    Case("multi-head", keys={"num_key_value_heads": 4}),
    Case("one key head", keys={"num_key_value_heads": 1}),
    Case("tied", keys={"tie_word_embeddings": True}),
    Case("sharded", shard_bytes="40KB"),
    Case("batch of three", batch=3),
    Case("head_dim of its own", batch=2, keys={"head_dim": 24}),
    Case("head_dim without fused kernels", keys={"head_dim": 6}),
    Case("sliding window", batch=2, keys={"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1}),
    Case("window of one", keys={"use_sliding_window": True, "sliding_window": 1, "max_window_layers": 2}),
    Case(
        "window by layer types",
        keys={
            "use_sliding_window": True,
            "sliding_window": 6,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    Case(
        "large eps, small theta",
        keys={"rms_norm_eps": 0.05, "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}},
    ),
    Case("bf16, tied, sharded", torch.bfloat16, shard_bytes="20KB", keys={"tie_word_embeddings": True}),
    Case(
        "bf16, batch of two, window",
        torch.bfloat16,
        2,
        keys={"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    ),
    Case("fp16", torch.float16),
    Case("fp16, multi-head, batch of two, sharded", torch.float16, 2, "20KB", {"num_key_value_heads": 4}),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Case -> (transformers' model as it reads the checkpoint back, ours with its cache empty)."""
    torch.manual_seed(0)
    made = {}
    for number, case in enumerate(CASES):
        keys = {"num_key_value_heads": 2, "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}} | case.keys
        config = transformers.Qwen2Config(
            hidden_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=96,
            vocab_size=160,
            max_position_embeddings=512,
            dtype=case.dtype,
            attn_implementation="eager",
            **keys,
        )
        made[case] = saved_and_read(
            tmp_path_factory.mktemp("agreement") / str(number), case, transformers.Qwen2ForCausalLM, config,
            TOKENS + STEPS, attn_implementation="eager",
        )  # fmt: skip
    return made


@pytest.mark.parametrize("chunks", [[TOKENS], [8, 7, 6], [5] + [1] * 16], ids=["whole", "chunks", "token by token"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_logits_of_every_position_agree(models, case, chunks):
    assert_every_position_agrees(*models[case], tokens_of(case, TOKENS), chunks)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_prefill_then_decode_agrees_and_chooses_the_same_tokens(models, case):
    assert_decode_agrees(*models[case], tokens_of(case, TOKENS))


@pytest.mark.parametrize("case", [case for case in CASES if case.dtype == torch.float32], ids=str)
def test_greedy_generation_gives_the_same_tokens(models, case):
    # transformers' cache for a window of 1 is to keep the last 0 keys and keeps all (5.24): there, without a cache.
    cached = case.keys.get("sliding_window") != 1
    assert_same_generation(*models[case], tokens_of(case, TOKENS), use_cache=cached)


def test_narrow_types_are_as_close_to_fp32_as_transformers_is(models):
    """Rounding differs in order, not in size: neither implementation is the less exact one."""
    for case in CASES:
        if case.dtype == torch.float32:
            continue
        theirs, ours = models[case]
        tokens = tokens_of(case, TOKENS)
        ours.reset()
        with torch.inference_mode():
            own, other = ours.forward(tokens, positions=TOKENS).float(), theirs(tokens).logits.float()
            exact = theirs.float()(tokens).logits
            theirs.to(case.dtype)
        assert (own - exact).abs().mean() < 1.1 * (other - exact).abs().mean(), case


@pytest.mark.parametrize("same", [True, False])
def test_a_head_stored_in_a_tied_checkpoint_is_used_by_both(tmp_path, same):
    directory = write_checkpoint(tmp_path / "tied", SyntheticSpec(layers=2, vocab=64, tied=True))
    weights = load_file(directory / "model.safetensors")
    embedding = weights["model.embed_tokens.weight"]
    weights["lm_head.weight"] = embedding.clone() if same else embedding.flip(0).contiguous()
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    tokens = torch.arange(9)[None] * 7
    with Checkpoint.open(directory) as checkpoint:
        ours = ReferenceModel(checkpoint, capacity=9).forward(tokens, positions=9)
        assert checkpoint.config.tie_word_embeddings is same
    with torch.inference_mode():
        assert_close(ours, transformers.AutoModelForCausalLM.from_pretrained(directory).eval()(tokens).logits)
