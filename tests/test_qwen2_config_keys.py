"""The list of a config.json's keys: complete by transformers' own classes, and true of each key."""

import dataclasses

import pytest
import transformers

from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.config_keys import KEYS, Ignored, Only, Read
from xinfer_lab.qwen2.errors import ConfigError

DENSE = {
    "model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 30, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
    "max_position_embeddings": 512,
}  # fmt: skip
EXPERTS = DENSE | {
    "model_type": "qwen2_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
}  # fmt: skip
CHANGES = {
    "hidden_size": 72, "num_hidden_layers": 29, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 24,
    "intermediate_size": 95, "vocab_size": 99, "max_position_embeddings": 99, "model_type": "qwen2_moe",
    "rms_norm_eps": 1e-4, "tie_word_embeddings": True, "dtype": "float16", "torch_dtype": "float16",
    "rope_parameters": {"rope_theta": 9.0}, "rope_scaling": {"rope_theta": 9.0}, "rope_theta": 9.0,
    "use_sliding_window": False, "sliding_window": 9, "max_window_layers": 3,
    "layer_types": ["full_attention"] * 30, "eos_token_id": 7, "num_experts": 9,
    "num_experts_per_tok": 3, "moe_intermediate_size": 31, "shared_expert_intermediate_size": 47,
    "norm_topk_prob": True, "decoder_sparse_step": 2, "mlp_only_layers": [1],
}  # fmt: skip
"""For each key that is read, a value that makes another model."""

NAMED = {kind: [key for key, fate in KEYS.items() if isinstance(fate, kind)] for kind in (Read, Only, Ignored)}
WINDOWED = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}
MISSING = object()


@pytest.mark.parametrize("kind", [transformers.Qwen2Config, transformers.Qwen2MoeConfig])
def test_every_key_of_transformers_is_listed(kind):
    new = {field.name for field in dataclasses.fields(kind)} - set(KEYS)
    assert not new, f"say in xinfer_lab/qwen2/config_keys.py what becomes of {new}"


@pytest.mark.parametrize("key", NAMED[Read])
def test_a_key_that_is_read_makes_another_model(key):
    of_experts = EXPERTS.keys() - DENSE | {"norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"}
    base = EXPERTS if key in of_experts else DENSE | WINDOWED
    if key == "model_type":
        base = EXPERTS | {key: "qwen2"}
    assert Qwen2Config.from_dict(base | {key: CHANGES[key]}) != Qwen2Config.from_dict(base)


@pytest.mark.parametrize("key", NAMED[Only])
def test_a_key_that_must_not_be_otherwise_is_refused_by_name(key):
    fate = KEYS[key]
    for value in fate.values:
        assert Qwen2Config.from_dict(EXPERTS | {key: value}) == Qwen2Config.from_dict(EXPERTS)
    for value in (True not in fate.values, 0.5, "other", {"some": 1}):
        with pytest.raises(ConfigError, match=f"^config: {key} must be left out or .*{fate.why[:20]}"):
            Qwen2Config.from_dict(EXPERTS | {key: value})


@pytest.mark.parametrize("key", NAMED[Ignored])
def test_a_key_that_is_passed_over_changes_nothing(key):
    for value in (None, 0, 7, 0.5, True, "other", [3], {"0": "a"}):
        assert Qwen2Config.from_dict(EXPERTS | {key: value}) == Qwen2Config.from_dict(EXPERTS)


@pytest.mark.parametrize("use", [MISSING, None, False, True])
@pytest.mark.parametrize("window", [MISSING, None, 8])
@pytest.mark.parametrize("first", [MISSING, None, -1, 0, 29, 99])
def test_windows_are_those_of_transformers(use, window, first):
    keys = {"use_sliding_window": use, "sliding_window": window, "max_window_layers": first}
    keys = {key: value for key, value in keys.items() if value is not MISSING}
    try:
        theirs = transformers.Qwen2Config(**DENSE | keys)
    except Exception as error:
        assert "expected bool, got NoneType" in str(error) or "expected int, got NoneType" in str(error)
        with pytest.raises(ConfigError, match=r"(use_sliding_window|max_window_layers) is null"):
            Qwen2Config.from_dict(DENSE | keys)
        return
    ours = Qwen2Config.from_dict(DENSE | keys)
    expected = [theirs.sliding_window if kind == "sliding_attention" else None for kind in theirs.layer_types]
    assert [ours.window(layer) for layer in range(30)] == expected


@pytest.mark.parametrize(
    "keys, theta",
    [
        ({"rope_parameters": {"rope_theta": 7.0}}, 7.0),
        ({"rope_parameters": {"rope_type": "default"}}, 5e5),
        ({"rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {"rope_theta": 8.0}}, 8.0),
        ({"rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {"type": "default"}}, 5e5),
        ({"rope_parameters": {"rope_theta": 7.0}, "rope_scaling": {}}, 7.0),
        ({"rope_parameters": {}, "rope_scaling": None}, 5e5),
    ],
)
def test_the_rotary_base_is_that_of_transformers(keys, theta):
    assert Qwen2Config.from_dict(DENSE | keys).rope_theta == theta
    assert transformers.Qwen2Config(**DENSE | keys).rope_parameters["rope_theta"] == theta


def test_angles_that_differ_between_kinds_of_layers_are_refused():
    keys = {"rope_parameters": {"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 8.0}}}
    with pytest.raises(ConfigError, match="rope_parameters has values for full_attention alone"):
        Qwen2Config.from_dict(DENSE | keys)


@pytest.mark.parametrize("key", ["hidden_size", "intermediate_size", "vocab_size", "head_dim", "num_hidden_layers"])
@pytest.mark.parametrize("value", [2**31, 2**64, 10**300])
def test_sizes_beyond_any_model_are_refused_by_name(key, value):
    with pytest.raises(ConfigError, match=rf"{key} must be at most \d+, but is \d"):
        Qwen2Config.from_dict(DENSE | {"head_dim": 16, key: value})


@pytest.mark.parametrize("value", [2**63, [1, 2**64], 10**300])
def test_end_tokens_beyond_64_bits_are_refused_by_name(value):
    assert Qwen2Config.from_dict(DENSE | {"eos_token_id": 2**63 - 1}).eos_token_ids == (2**63 - 1,)
    with pytest.raises(ConfigError, match="eos_token_id must be a token id"):
        Qwen2Config.from_dict(DENSE | {"eos_token_id": value})
