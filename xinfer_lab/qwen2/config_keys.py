"""Every key of a config.json that transformers 5 knows for Qwen2 and Qwen2-MoE, and what is done with it here.

A key that changes the maths and is passed over gives wrong logits without a word. So the list is complete: a test holds
it against the configuration classes of transformers, and another reads models with each key changed.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["ABSENT", "KEYS", "Ignored", "Only", "Read"]

ABSENT = object()
"""Stands for a key that is not there, in `Only.values`."""


@dataclass(frozen=True)
class Read:
    """Read by `Qwen2Config.from_dict`. `absent` says what its absence means."""

    absent: str


@dataclass(frozen=True)
class Only:
    """Refused by name unless it is absent or one of `values`, where it changes nothing. `why` ends the sentence."""

    values: tuple[Any, ...]
    why: str

    def allows(self, value: Any) -> bool:
        """Whether `value` (`ABSENT` for none) is harmless. 1 is not true, and 0 is not false."""
        return value is ABSENT or any(type(value) is type(known) and value == known for known in self.values)


@dataclass(frozen=True)
class Ignored:
    """Passed over, since it does not change what a forward pass computes. `why` says what it is for."""

    why: str


_REFUSED = "refused"
_TRAINING = Ignored("training alone")
_OUTPUTS = Ignored("what a call of transformers returns")
_LABELS = Ignored("classifiers")

KEYS: dict[str, Read | Only | Ignored] = {
    # Sizes.
    "hidden_size": Read(_REFUSED),
    "num_hidden_layers": Read(_REFUSED),
    "num_attention_heads": Read(_REFUSED),
    "num_key_value_heads": Read(_REFUSED + "; null means num_attention_heads"),
    "head_dim": Read("hidden_size / num_attention_heads"),
    "intermediate_size": Read(_REFUSED),
    "vocab_size": Read(_REFUSED),
    "max_position_embeddings": Read(_REFUSED),
    # Constants and forms of the maths.
    "model_type": Read(_REFUSED),
    "rms_norm_eps": Read(_REFUSED),
    "tie_word_embeddings": Read("false"),
    "dtype": Read("torch_dtype; the weights' own type counts"),
    "torch_dtype": Read("float32; the weights' own type counts"),
    "rope_parameters": Read("rope_theta at the top level"),
    "rope_scaling": Read("rope_parameters"),
    "rope_theta": Read(_REFUSED + " unless rope_parameters or rope_scaling has it"),
    "use_sliding_window": Read("false"),
    "sliding_window": Read("4096 with use_sliding_window; null means no window"),
    "max_window_layers": Read("28 with use_sliding_window"),
    "layer_types": Read("sliding from max_window_layers on; refused with experts and use_sliding_window"),
    "eos_token_id": Read("none; where there is a generation_config.json, that decides"),
    "hidden_act": Only(("silu",), "no other activation is run here"),
    "qkv_bias": Only((True,), "the maths here has biases in all of q, k and v"),
    "partial_rotary_factor": Only((1, 1.0, None), "versions of transformers do not agree on what it does to Qwen2"),
    # Experts.
    "num_experts": Read(_REFUSED),
    "num_experts_per_tok": Read(_REFUSED),
    "moe_intermediate_size": Read(_REFUSED),
    "shared_expert_intermediate_size": Read(_REFUSED),
    "norm_topk_prob": Read("false"),
    "decoder_sparse_step": Read("1"),
    "mlp_only_layers": Read("none"),
    # Of any model in transformers; another value would be another model.
    "is_causal": Only((True, None), "attention that sees what comes later is not run here"),
    "is_encoder_decoder": Only((False, None), "no encoder is run here"),
    "per_layer_config": Only((None, {}), "all layers are run with the same sizes"),
    "kv_sharing_modes": Only((None,), "each layer has keys and values of its own here"),
    "quantization_config": Only(
        (None, {}), "only fp32, fp16 and bf16 weights are run. Use the checkpoint that was not quantised"
    ),
    # What changes nothing in a forward pass.
    "chunk_size_feed_forward": Ignored("other models"),
    "attention_dropout": _TRAINING,
    "initializer_range": _TRAINING,
    "output_router_logits": _TRAINING,
    "router_aux_loss_coef": _TRAINING,
    "use_cache": Ignored("whether keys and values are kept; they always are here, and the logits are the same"),
    "pad_token_id": Ignored("batches of unequal length, which are not run here"),
    "bos_token_id": Ignored("generation without a prompt; the tokenizer adds begin tokens to text"),
    "output_hidden_states": _OUTPUTS,
    "return_dict": _OUTPUTS,
    "id2label": _LABELS,
    "label2id": _LABELS,
    "problem_type": _LABELS,
    "architectures": Ignored("the class that saved it; the tensors are checked by name"),
    "transformers_version": Ignored("the version that saved it"),
}
"""By name. A key that is not listed is none of Qwen2's, and transformers 5 ignores it, too."""
