"""Judges sizes in Lab 1: what layers, models and caches weigh, as sums over named parts.

So a wrong idea is a change to one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Judge, Outcome, WrongModel
from xinfer_lab.labs.lab1.cases import config_json

__all__ = ["KV_CACHE", "LAYER", "MODEL"]

Inputs = Mapping[str, Value]
Parts = dict[str, int | Fraction]


def _layer_parts(inputs: Inputs) -> Parts:
    """Elements of each of a layer's tensors by name, from the package's own layout."""
    from xinfer_lab.qwen2.config import Qwen2Config
    from xinfer_lab.qwen2.layout import tensor_shapes

    shapes = tensor_shapes(Qwen2Config.from_dict(inputs["config"]))
    return {name: math.prod(shape) for group in shapes.values() for name, shape in group.items()}


def _item(inputs: Inputs) -> int:
    return {"float32": 4, "float16": 2, "bfloat16": 2}[inputs["config"]["torch_dtype"]]


def _layer(
    change: Callable[[Parts, Mapping[str, Value]], Parts | None] = lambda parts, config: None,
) -> Callable[[Inputs], Value]:
    def total(inputs: Inputs) -> Value:
        parts = _layer_parts(inputs)
        return int(_item(inputs) * sum((change(parts, inputs["config"]) or parts).values()))

    return total


def _without(*fragments: str) -> Callable[[Parts, Mapping[str, Value]], Parts]:
    return lambda parts, config: {name: n for name, n in parts.items() if not any(f in name for f in fragments)}


def _with(**more: Callable[[Mapping[str, Value]], int]) -> Callable[[Parts, Mapping[str, Value]], Parts]:
    return lambda parts, config: {**parts, **{name: count(config) for name, count in more.items()}}


def _wide_keys(parts: Parts, config: Mapping[str, Value]) -> Parts:
    groups = config["num_attention_heads"] // config["num_key_value_heads"]
    return {name: n * groups if "k_proj" in name or "v_proj" in name else n for name, n in parts.items()}


def _square_mlp(parts: Parts, config: Mapping[str, Value]) -> Parts:
    return {name: 4 * config["hidden_size"] ** 2 if "mlp" in name else n for name, n in parts.items()}


def _config_name(case: Case) -> str:
    return f"{case.label}, {_sizes_of(case.inputs['config'])}"


def _sizes_of(config: Mapping[str, Value]) -> str:
    return (
        f"hidden_size {config['hidden_size']}, {config['num_hidden_layers']} layers, "
        f"{config['num_attention_heads']} heads, {config['num_key_value_heads']} kv heads, "
        f"intermediate_size {config['intermediate_size']}, vocab_size {config['vocab_size']}, "
        f"{'tied' if config['tie_word_embeddings'] else 'untied'}, {config['torch_dtype']}"
    )


TWO_BYTES = "Every weight is taken to be two bytes"
TWO_BYTES_WHY = "float32 takes 4 bytes an element; the config's torch_dtype says which type it is."

PER_CONFIG: dict[str, Callable[[Inputs], Value]] = {
    "bytes_per_layer": lambda inputs: _model()(inputs),
    "context": lambda inputs: _cache()(inputs),
}


def _one_config(outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
    """Whether some config, taken for every case's, explains all the answers; the published ones are tried."""
    first = outcomes[0][0].inputs
    answer = next((PER_CONFIG[name] for name in PER_CONFIG if name in first), _layer())
    return any(
        all(
            outcome.raised is None and outcome.value == answer({**case.inputs, "config": config_json(name)})
            for case, outcome in outcomes
        )
        for name in ("0.5b", "1.5b", "7b", "14b", "32b", "72b")
    )


ONE_CONFIG = WrongModel(
    "One model's sizes are used for every config",
    "Take them from the argument config, not from MODELS or from a variable of an earlier cell.",
    pattern=_one_config,
    rule="config",
)

LAYER = Judge(
    truth=_layer(),
    passed="Bytes of a decoder layer, biases, norms, grouped heads and dtype included.",
    noun="number of bytes",
    call=lambda case: f"layer_bytes of {_config_name(case)}",
    wrong=(
        WrongModel(
            "The biases are missing",
            "The q, k and v projections of Qwen2 have a bias each.",
            _layer(_without("bias")),
            rule="biases",
        ),
        WrongModel(
            "k and v are as wide as q",
            "With grouped heads k_proj and v_proj have num_key_value_heads * head_dim rows, not hidden_size.",
            _layer(_wide_keys),
            rule="grouped",
        ),
        WrongModel(
            "The norms are missing",
            "Each layer has two RMSNorm weights of hidden_size.",
            _layer(_without("norm")),
            rule="norms",
        ),
        WrongModel(
            "One of the two norms is missing",
            "A layer has input_layernorm and post_attention_layernorm.",
            _layer(_without("input_layernorm")),
            rule="norms",
        ),
        WrongModel(
            "Two matrices in the MLP",
            "The gated MLP has three: gate_proj, up_proj and down_proj.",
            _layer(_without("gate_proj")),
            rule="mlp",
        ),
        WrongModel(
            "o_proj has a bias",
            "Only q_proj, k_proj and v_proj have biases; nor does the final norm belong to a layer.",
            _layer(_with(bias=lambda config: config["hidden_size"])),
            rule="only_three_biases",
        ),
        WrongModel(
            "o_proj is missing",
            "The heads' output goes through o_proj, hidden_size squared.",
            _layer(_without("o_proj")),
            rule="o_proj",
        ),
        WrongModel(
            "The MLP is four times as wide as hidden_size",
            "Its width is intermediate_size; the rule of four is GPT-2's.",
            _layer(_square_mlp),
            rule="intermediate",
        ),
        WrongModel(
            "Elements, not bytes",
            "The count has to be multiplied by the bytes of one element.",
            lambda inputs: sum(_layer_parts(inputs).values()),
            rule="dtype",
        ),
        WrongModel(TWO_BYTES, TWO_BYTES_WHY, lambda inputs: 2 * sum(_layer_parts(inputs).values()), rule="dtype"),
        WrongModel(
            "Every weight is taken to be four bytes",
            "bfloat16 and float16 take 2 bytes an element.",
            lambda inputs: 4 * sum(_layer_parts(inputs).values()),
            rule="dtype",
        ),
        WrongModel(
            "Bits, not bytes",
            "A byte has 8 bits.",
            lambda inputs: 8 * _item(inputs) * sum(_layer_parts(inputs).values()),
            rule="dtype",
        ),
        WrongModel(
            "All layers at once",
            "One layer was asked for.",
            lambda inputs: inputs["config"]["num_hidden_layers"] * _layer()(inputs),
            rule="one_layer",
        ),
        WrongModel(
            "The embedding is counted into the layer",
            "The embedding belongs to the model, not to a layer.",
            _layer(_with(embedding=lambda config: config["vocab_size"] * config["hidden_size"])),
            rule="nothing_else",
        ),
        ONE_CONFIG,
    ),
    besides=("keeps_inputs",),
)


def _model(
    *,
    head: str = "untied",
    embedding: bool = True,
    norm: bool = True,
    layers: int | None = None,
    item: int | None = None,
    twice: bool = False,
    own_layer: bool = False,
) -> Callable[[Inputs], Value]:
    def total(inputs: Inputs) -> Value:
        config = inputs["config"]
        table = config["vocab_size"] * config["hidden_size"]
        heads = {
            "untied": not config["tie_word_embeddings"],
            "always": True,
            "never": False,
            "inverted": config["tie_word_embeddings"],
        }[head]
        outside = table * heads + table * embedding + config["hidden_size"] * norm
        count = config["num_hidden_layers"] if layers is None else layers
        layer = _layer()(inputs) if own_layer else inputs["bytes_per_layer"] * (_item(inputs) if twice else 1)
        return int(layer * count + outside * (item or _item(inputs)))

    return total


MODEL = Judge(
    truth=_model(),
    passed="Bytes of a whole model, tied and untied.",
    noun="number of bytes",
    call=lambda case: f"model_bytes of {_config_name(case)}, bytes_per_layer {case.inputs['bytes_per_layer']:,}",
    wrong=(
        WrongModel(
            "The head is counted although it is tied",
            "A tied model uses the embedding as its head; lm_head.weight is not in the file.",
            _model(head="always"),
            rule="tied",
        ),
        WrongModel(
            "The head is never counted",
            "An untied model has its own lm_head.weight of vocab_size x hidden_size.",
            _model(head="never"),
            rule="untied",
        ),
        WrongModel(
            "Tied and untied are swapped",
            "tie_word_embeddings true means: no head of its own.",
            _model(head="inverted"),
            rule="tied",
        ),
        WrongModel(
            "The embedding is missing",
            "model.embed_tokens.weight is vocab_size x hidden_size.",
            _model(embedding=False),
            rule="embedding",
        ),
        WrongModel(
            "The final norm is missing",
            "model.norm.weight has hidden_size elements.",
            _model(norm=False),
            rule="final_norm",
        ),
        WrongModel(
            "The layers are missing", "There are num_hidden_layers of them.", _model(layers=0), rule="all_layers"
        ),
        WrongModel(
            "Only one layer is counted", "There are num_hidden_layers of them.", _model(layers=1), rule="all_layers"
        ),
        WrongModel(TWO_BYTES, TWO_BYTES_WHY, _model(item=2), rule="dtype"),
        WrongModel(
            "Elements, not bytes",
            "Embedding, norm and head are counted in elements, the layers in bytes.",
            _model(item=1),
            rule="dtype",
        ),
        WrongModel(
            "The layers are multiplied by the bytes of an element twice",
            "bytes_per_layer is in bytes already; only embedding, norm and head are still elements.",
            _model(twice=True),
            rule="given_bytes",
        ),
        WrongModel(
            "The argument bytes_per_layer is not used",
            "Use it in place of layer_bytes(config): here it is a made-up number.",
            _model(own_layer=True),
            rule="given_bytes",
        ),
        ONE_CONFIG,
    ),
    besides=("keeps_inputs",),
)


def _cache(**factors: Callable[[Inputs], int | Fraction]) -> Callable[[Inputs], Value]:
    def product(inputs: Inputs) -> Value:
        config = inputs["config"]
        whole: dict[str, int | Fraction] = {
            "both": 2,
            "layers": config["num_hidden_layers"],
            "heads": config["num_key_value_heads"],
            "width": config["hidden_size"] // config["num_attention_heads"],
            "context": inputs["context"],
            "batch": inputs["batch"],
            "item": _item(inputs),
        }
        whole.update((name, factor(inputs)) for name, factor in factors.items())
        result = math.prod(whole.values())
        return int(result) if result == int(result) else float(result)

    return product


KV_CACHE = Judge(
    truth=_cache(),
    passed="Bytes of the KV cache, grouped heads, batch and dtype included.",
    noun="number of bytes",
    call=lambda case: (
        f"kv_cache_bytes of {_config_name(case)}, context {case.inputs['context']}, batch {case.inputs['batch']}"
    ),
    wrong=(
        WrongModel(
            "Keys only", "A cache holds keys and values.", _cache(both=lambda inputs: 1), rule="keys_and_values"
        ),
        WrongModel(
            "One layer only", "Every layer has its own cache.", _cache(layers=lambda inputs: 1), rule="all_layers"
        ),
        WrongModel(
            "All heads are cached",
            "num_key_value_heads of them are stored, each hidden_size // num_attention_heads wide.",
            _cache(heads=lambda inputs: inputs["config"]["num_attention_heads"]),
            rule="kv_heads",
        ),
        WrongModel(
            "Each kv head is hidden_size wide",
            "A head is head_dim wide.",
            _cache(width=lambda inputs: inputs["config"]["hidden_size"]),
            rule="head_dim",
        ),
        WrongModel(
            "The batch is missing",
            "Each sequence of the batch has its own cache.",
            _cache(batch=lambda inputs: 1),
            rule="batch",
        ),
        WrongModel(
            "The context is missing",
            "Each token of the context is stored.",
            _cache(context=lambda inputs: 1),
            rule="context",
        ),
        WrongModel(
            "The context is squared",
            "Attention compares all pairs of tokens, but the cache stores each token once.",
            _cache(context=lambda inputs: inputs["context"] ** 2),
            rule="context",
        ),
        WrongModel(TWO_BYTES, TWO_BYTES_WHY, _cache(item=lambda inputs: 2), rule="dtype"),
        WrongModel(
            "Elements, not bytes", "Multiply by the bytes of one element.", _cache(item=lambda inputs: 1), rule="dtype"
        ),
        WrongModel(
            "One head only",
            "There are num_key_value_heads of them in each layer.",
            _cache(heads=lambda inputs: 1),
            rule="kv_heads",
        ),
        ONE_CONFIG,
    ),
    besides=("keeps_inputs",),
)
