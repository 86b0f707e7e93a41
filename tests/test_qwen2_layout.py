"""How a layer lies in memory."""

from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.config import DTYPES, PUBLISHED, Qwen2Config
from xinfer_lab.qwen2.layout import ALIGNMENT, layer_layout, resident_tensors, tensor_name

LAYER_BYTES = {
    "0.5b": 29_824_768,
    "1.5b": 93_595_648,
    "7b": 466_115_584,
    "14b": 550_537_216,
    "32b": 975_210_496,
    "72b": 1_755_369_472,
}


@pytest.mark.parametrize("name", LAYER_BYTES)
def test_a_published_layer_has_the_published_bytes(name):
    assert layer_layout(PUBLISHED[name]).weight_nbytes == LAYER_BYTES[name]


SMALL = st.builds(
    lambda hidden, kv, group, half, wide, dtype: Qwen2Config(
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=kv * group,
        num_key_value_heads=kv,
        head_dim=2 * half,
        intermediate_size=wide,
        vocab_size=11,
        dtype=dtype,
    ),
    st.integers(1, 70),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 9),
    st.integers(1, 70),
    st.sampled_from(list(DTYPES.values())),
)


@given(SMALL)
def test_places_are_aligned_in_order_apart_and_within_their_group(config):
    for group in (*layer_layout(config).groups, resident_tensors(config)):
        reached = 0
        for place in group.tensors:
            assert place.offset % ALIGNMENT == 0
            assert reached <= place.offset < reached + ALIGNMENT
            assert place.nbytes == torch.Size(place.shape).numel() * config.dtype.itemsize
            reached = place.offset + place.nbytes
        assert reached <= group.nbytes < reached + ALIGNMENT
        assert group.nbytes % ALIGNMENT == 0
        assert group.weight_nbytes == sum(place.nbytes for place in group.tensors)


@given(SMALL)
def test_a_layer_is_its_groups(config):
    layout = layer_layout(config)
    assert [group.name for group in layout.groups] == ["attention", "mlp"]
    assert layout.nbytes == sum(group.nbytes for group in layout.groups)
    assert layout.group("mlp") is layout.groups[1]
    with pytest.raises(KeyError, match="'other'"):
        layout.group("other")


@pytest.mark.parametrize("tied", [False, True])
def test_names_and_shapes_are_those_of_transformers(tied):
    config = replace(PUBLISHED["0.5b"], num_hidden_layers=2, tie_word_embeddings=tied, head_dim=32)
    with torch.device("meta"):
        theirs = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**config.to_dict())).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in theirs.items() if not (tied and name == "lm_head.weight")}
    assert expected_shapes(config) == shapes


def test_a_tied_model_has_no_head_of_its_own():
    assert [place.name for place in resident_tensors(PUBLISHED["0.5b"]).tensors] == [
        "model.embed_tokens.weight",
        "model.norm.weight",
    ]
    assert "lm_head.weight" in [place.name for place in resident_tensors(PUBLISHED["7b"]).tensors]


def test_the_checkpoint_name_of_a_layer_tensor():
    assert tensor_name(12, "self_attn.q_proj.bias") == "model.layers.12.self_attn.q_proj.bias"
