"""The forward pass agrees with transformers' Qwen2ForCausalLM on checkpoints that transformers wrote."""

from dataclasses import dataclass, field

import pytest
import torch
import transformers

from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, greedy

TOKENS = 21
STEPS = 5


@dataclass(frozen=True, eq=False)
class Case:
    """A model of transformers and how it is saved."""

    name: str
    dtype: torch.dtype = torch.float32
    batch: int = 1
    shard_bytes: str = "10GB"
    keys: dict = field(default_factory=dict)

    def __str__(self):
        return self.name


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

LIMIT = {torch.float32: 1e-5, torch.float16: 8e-3, torch.bfloat16: 6e-2}
"""Largest difference over largest logit. In fp16 and bf16 both sides are about this far from fp32 (last test)."""


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
        source = transformers.Qwen2ForCausalLM(config)
        with torch.no_grad():
            for name, parameter in source.named_parameters():
                parameter.normal_(mean=1.0 if "norm" in name else 0.0, std=0.2)
        directory = tmp_path_factory.mktemp("agreement") / str(number)
        source.to(case.dtype).save_pretrained(directory, max_shard_size=case.shard_bytes)
        theirs = transformers.Qwen2ForCausalLM.from_pretrained(
            directory, dtype=case.dtype, attn_implementation="eager"
        ).eval()
        with Checkpoint.open(directory) as checkpoint:
            files = {checkpoint.entry(name).file for name in checkpoint.names()}
            assert (len(files) > 1) == (case.shard_bytes != "10GB"), "the case is sharded as it says"
            ours = ReferenceModel(checkpoint, capacity=TOKENS + STEPS, batch=case.batch)
        made[case] = theirs, ours
    return made


def tokens_of(case, count):
    return torch.randint(0, 160, (case.batch, count), generator=torch.Generator().manual_seed(1))


def assert_close(ours, theirs):
    difference = (ours.float() - theirs.float()).abs().max() / theirs.float().abs().max()
    assert ours.dtype == theirs.dtype
    assert difference <= LIMIT[ours.dtype], f"relative difference {difference:.2e}"


@pytest.mark.parametrize("chunks", [[TOKENS], [8, 7, 6], [5] + [1] * 16], ids=["whole", "chunks", "token by token"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_logits_of_every_position_agree(models, case, chunks):
    theirs, ours = models[case]
    tokens = tokens_of(case, TOKENS)
    ours.reset()
    logits = torch.cat([ours.forward(part, positions=part.shape[1]) for part in tokens.split(chunks, dim=1)], dim=1)
    with torch.inference_mode():
        assert_close(logits, theirs(tokens).logits)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_prefill_then_decode_agrees_and_chooses_the_same_tokens(models, case):
    theirs, ours = models[case]
    ours.reset()
    tokens = tokens_of(case, TOKENS)
    for _ in range(STEPS):
        logits = ours.forward(tokens[:, ours.position :])[:, -1]
        with torch.inference_mode():
            expected = theirs(tokens, use_cache=False).logits[:, -1]
        assert_close(logits, expected)
        chosen = expected.argmax(-1)
        if case.dtype == torch.float32:
            assert torch.equal(greedy(logits), chosen)
        tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)
    assert tokens[:, TOKENS:].unique().numel() > 1, "a model that repeats one token would hide a wrong position"


@pytest.mark.parametrize("case", [case for case in CASES if case.dtype == torch.float32], ids=str)
def test_greedy_generation_gives_the_same_tokens(models, case):
    theirs, ours = models[case]
    ours.reset()
    prompt = tokens_of(case, TOKENS)
    # transformers' cache for a window of 1 is to keep the last 0 keys and keeps all (5.24): there, without a cache.
    cached = case.keys.get("sliding_window") != 1
    expected = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=STEPS,
        do_sample=False,
        pad_token_id=0,
        use_cache=cached,
    )
    seen = prompt
    for _ in range(STEPS):
        new = seen[:, ours.position :]
        seen = torch.cat([seen, greedy(ours.forward(new)[:, -1]).unsqueeze(1)], dim=1)
    assert torch.equal(seen, expected)


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
