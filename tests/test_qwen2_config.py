"""config.json: what is read, what is refused and by which name."""

import contextlib
import json
from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.qwen2.config import DTYPES, PUBLISHED, ConfigError, Qwen2Config

GOOD = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 5e5,
    "max_position_embeddings": 512,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
    "eos_token_id": 7,
}


def without(*names, **more):
    return {key: value for key, value in (GOOD | more).items() if key not in names}


def test_every_field_is_taken_from_the_file():
    config = Qwen2Config.from_dict(GOOD)
    assert config == Qwen2Config(
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=96,
        vocab_size=128,
        rms_norm_eps=1e-5,
        rope_theta=5e5,
        tie_word_embeddings=True,
        max_position_embeddings=512,
        dtype=torch.bfloat16,
        eos_token_ids=(7,),
    )


def test_rope_theta_may_stand_in_rope_parameters():
    data = without("rope_theta", rope_parameters={"rope_theta": 123.0, "rope_type": "default"})
    assert Qwen2Config.from_dict(data).rope_theta == 123.0


def test_rope_parameters_take_precedence_over_the_top_level():
    assert Qwen2Config.from_dict(GOOD | {"rope_parameters": {"rope_theta": 9.0}}).rope_theta == 9.0


def test_dtype_has_two_names_and_a_prefix():
    assert Qwen2Config.from_dict(without("torch_dtype", dtype="float16")).dtype == torch.float16
    assert Qwen2Config.from_dict(without("torch_dtype", dtype="torch.float32")).dtype == torch.float32
    assert Qwen2Config.from_dict(without("torch_dtype")).dtype == torch.float32


def test_head_dim_may_be_absent_null_or_its_own():
    assert Qwen2Config.from_dict(GOOD | {"head_dim": None}).head_dim == 16
    assert Qwen2Config.from_dict(GOOD | {"head_dim": 24}).head_dim == 24


def test_null_key_value_heads_mean_one_for_each_query_head():
    assert Qwen2Config.from_dict(GOOD | {"num_key_value_heads": None}).num_key_value_heads == 4


def test_several_end_of_text_ids():
    assert Qwen2Config.from_dict(GOOD | {"eos_token_id": [3, 5]}).eos_token_ids == (3, 5)
    assert Qwen2Config.from_dict(without("eos_token_id")).eos_token_ids == ()


def test_a_window_is_honoured_only_where_it_is_in_use():
    unused = Qwen2Config.from_dict(GOOD | {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 1})
    assert [unused.window(layer) for layer in range(4)] == [None] * 4
    used = Qwen2Config.from_dict(GOOD | {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1})
    assert [used.window(layer) for layer in range(4)] == [None, 8, 8, 8]


def test_layer_types_say_which_layers_have_the_window():
    types = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    config = Qwen2Config.from_dict(
        GOOD | {"use_sliding_window": True, "sliding_window": 8, "layer_types": types, "max_window_layers": 0}
    )
    assert [config.window(layer) for layer in range(4)] == [8, None, 8, None]
    with pytest.raises(IndexError, match=r"0\.\.3"):
        config.window(4)


@pytest.mark.parametrize(
    "name",
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
        "rms_norm_eps",
        "rope_theta",
        "max_position_embeddings",
    ],
)
def test_a_missing_key_is_named(name):
    with pytest.raises(ConfigError, match=f"^config: {name} is missing"):
        Qwen2Config.from_dict(without(name))


@pytest.mark.parametrize(
    "name",
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "vocab_size",
        "rms_norm_eps",
        "rope_theta",
        "max_position_embeddings",
    ],
)
@pytest.mark.parametrize("value", [0, -2])
def test_a_size_that_is_not_positive_is_named(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be greater than 0, but is {value}|without head_dim"):
        Qwen2Config.from_dict(GOOD | {name: value})
    with pytest.raises(ConfigError, match=f"{name} must be greater than 0, but is {value}"):
        replace(Qwen2Config.from_dict(GOOD), **{name: value})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "llama"}, "model_type must be 'qwen2' or 'qwen2_moe', but is 'llama'"),
        ({"model_type": "qwen3_moe"}, "model_type must be 'qwen2' or 'qwen2_moe', but is 'qwen3_moe'"),
        ({"model_type": "qwen2_moe"}, "num_experts is missing"),
        ({"hidden_act": "gelu"}, "hidden_act must be left out or \"silu\", but is 'gelu'"),
        ({"hidden_act": None}, "hidden_act"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling asks for rope type 'yarn'"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope type 'linear'"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e6}},
            "rope_parameters asks for rope type 'dynamic'",
        ),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_scaling": {"type": "yarn"}}, "rope type 'yarn'"),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5}},
            "partial_rotary",
        ),
        ({"rope_parameters": [1]}, "rope_parameters must be an object"),
        ({"rope_parameters": {"rope_theta": "big"}}, "rope_theta must be a finite number, but is 'big'"),
        ({"num_key_value_heads": 3}, "4 is no multiple of 3"),
        ({"num_attention_heads": 6, "num_key_value_heads": 6}, "64 is no multiple of 6"),
        ({"head_dim": 15}, "head_dim must be even"),
        ({"hidden_size": "64"}, "hidden_size must be a whole number, but is '64'"),
        ({"hidden_size": 64.5}, "hidden_size must be a whole number"),
        ({"vocab_size": True}, "vocab_size must be a whole number, but is True"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps must be a finite number"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps must be a finite number"),
        ({"rope_theta": float("inf")}, "rope_theta must be a finite number"),
        ({"rope_theta": 10**400}, "rope_theta must be a finite number"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false"),
        ({"torch_dtype": "float64"}, "torch_dtype must be one of float32, float16, bfloat16, but is 'float64'"),
        ({"dtype": 16}, "dtype must be one of"),
        ({"eos_token_id": "end"}, "eos_token_id must be a token id"),
        ({"eos_token_id": [1, -1]}, "eos_token_id"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config must be left out or null"),
        ({"layer_types": ["full_attention"]}, "layer_types must name each of the 4 layers"),
        ({"layer_types": "full_attention"}, "layer_types must be a list of strings"),
        ({"layer_types": ["full_attention"] * 3 + ["linear_attention"]}, "'linear_attention'"),
        ({"layer_types": ["sliding_attention"] * 4}, "no sliding_window is in use"),
        ({"use_sliding_window": True, "sliding_window": 0}, "sliding_window must be greater than 0"),
        ({"use_sliding_window": "no"}, "use_sliding_window must be true or false"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Qwen2Config.from_dict(GOOD | change, "here/config.json")
    assert str(caught.value).startswith("here/config.json: ")
    assert str(caught.value).count("here/config.json") == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([*GOOD, "rope_parameters", "rope_scaling", "layer_types", "head_dim", "sliding_window"]),
)
def test_any_value_of_any_key_gives_a_config_or_a_config_error(value, key):
    with contextlib.suppress(ConfigError):
        Qwen2Config.from_dict(GOOD | {"use_sliding_window": True, key: value})


def test_a_directory_or_its_file_can_be_given(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GOOD))
    assert Qwen2Config.from_file(tmp_path) == Qwen2Config.from_dict(GOOD)
    assert Qwen2Config.from_file(tmp_path / "config.json") == Qwen2Config.from_dict(GOOD)


def test_generation_config_decides_where_text_ends(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GOOD))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 6]}))
    assert Qwen2Config.from_file(tmp_path).eos_token_ids == (5, 6)
    (tmp_path / "generation_config.json").write_text("{}")
    assert Qwen2Config.from_file(tmp_path).eos_token_ids == ()
    (tmp_path / "generation_config.json").unlink()
    assert Qwen2Config.from_file(tmp_path).eos_token_ids == (7,)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "no such file"),
        (b"{", "not valid JSON"),
        (b"[]", "a JSON object was wanted"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_file_that_is_no_config_is_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        Qwen2Config.from_file(tmp_path)
    assert "config.json" in str(caught.value)


CONFIGS = st.builds(
    lambda heads, group, head_dim, layers, window, from_layer, dtype, tied, eos: Qwen2Config(
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=heads * group,
        num_key_value_heads=heads,
        head_dim=2 * head_dim,
        intermediate_size=96,
        vocab_size=128,
        rms_norm_eps=1e-5,
        rope_theta=1e4,
        tie_word_embeddings=tied,
        dtype=dtype,
        sliding_window=window,
        max_window_layers=from_layer,
        eos_token_ids=eos,
    ),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 32),
    st.integers(1, 5),
    st.none() | st.integers(1, 99),
    st.integers(0, 5),
    st.sampled_from(list(DTYPES.values())),
    st.booleans(),
    st.lists(st.integers(0, 127), max_size=3).map(tuple),
)


@given(CONFIGS)
def test_to_dict_and_back_is_the_same_config(config):
    assert Qwen2Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@settings(deadline=None)
@given(CONFIGS)
def test_transformers_reads_and_writes_the_same_config(config):
    theirs = transformers.Qwen2Config(**config.to_dict())
    again = Qwen2Config.from_dict(json.loads(theirs.to_json_string(use_diff=False)))
    windows = [config.window(layer) for layer in range(config.num_hidden_layers)]
    assert [again.window(layer) for layer in range(again.num_hidden_layers)] == windows
    kept = {"layer_types": None, "max_window_layers": 0, "sliding_window": None}
    assert replace(again, **kept) == replace(config, **kept)


def test_the_published_sizes():
    table = {
        name: (
            c.hidden_size,
            c.num_hidden_layers,
            c.num_attention_heads,
            c.num_key_value_heads,
            c.intermediate_size,
            c.vocab_size,
            c.tie_word_embeddings,
        )
        for name, c in PUBLISHED.items()
    }
    assert table == {
        "0.5b": (896, 24, 14, 2, 4864, 151936, True),
        "1.5b": (1536, 28, 12, 2, 8960, 151936, True),
        "7b": (3584, 28, 28, 4, 18944, 152064, False),
        "14b": (5120, 48, 40, 8, 13824, 152064, False),
        "32b": (5120, 64, 40, 8, 27648, 152064, False),
        "72b": (8192, 80, 64, 8, 29568, 152064, False),
    }
    for config in PUBLISHED.values():
        assert (config.rms_norm_eps, config.rope_theta, config.max_position_embeddings, config.dtype) == (
            1e-6,
            1e6,
            32768,
            torch.bfloat16,
        )
        assert config.head_dim * config.num_attention_heads == config.hidden_size
