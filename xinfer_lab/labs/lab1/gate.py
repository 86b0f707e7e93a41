"""The cases of Lab 1's gate: small models and budgets around what they really need."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from xinfer_lab.grading.piece import Case

if TYPE_CHECKING:
    from xinfer_lab.qwen2.synthetic import SyntheticSpec

__all__ = ["STEPS", "gate_cases", "prompt_of", "spec_of"]

STEPS = 2
"""Forward passes of a run: the prompt, and one token after it."""


def spec_of(inputs: Any) -> SyntheticSpec:
    """The checkpoint that a case is about."""
    from xinfer_lab.qwen2.synthetic import SyntheticSpec

    return SyntheticSpec(**inputs["spec"])


def prompt_of(inputs: Any) -> Any:
    """The case's prompt, int64 of shape [batch, tokens]."""
    import torch

    tokens = torch.arange(inputs["batch"] * inputs["prompt"], device="cpu") * 37 % inputs["spec"]["vocab"]
    return tokens.reshape(inputs["batch"], inputs["prompt"])


def gate_cases(random: Random) -> list[Case]:
    """Three models; for each, GPUs on which all of it fits, a pool fits, and nothing fits."""
    cases = []
    for tied in (False, True, random.random() < 0.5):
        cases += _model_cases(random, tied)
    return cases


def _model_cases(random: Random, tied: bool) -> list[Case]:
    # Every tensor is a multiple of 256 bytes long, since the lab leaves the padding of slots out.
    kv, layers = random.choice((1, 2)) if tied else 2, random.randint(4, 8)
    spec = {
        "layers": layers,
        "hidden": 128,
        "heads": 2 * kv,
        "kv_heads": kv,
        "intermediate": 64 * random.randint(2, 4),
        "vocab": 64 * random.randint(4, 9),
        "tied": tied,
        "seed": random.randrange(1000),
    }
    inputs: dict[str, Any] = {
        "spec": spec,
        "context": random.choice((16, 24, 32)),
        "batch": random.choice((1, 2)) if tied else 2,
        "prompt": random.randint(3, 9),
    }
    always, working, layer, config = _figures(inputs)
    inputs |= {"config": config, "working": working}
    pool = random.randint(3, layers - 1)
    budgets = (
        ("room for everything", always + layers * layer + random.randint(0, layer)),
        ("one byte too little for everything", always + layers * layer - 1),
        (f"room for {pool} layers", always + pool * layer + random.randint(0, layer - 1)),
        ("room for two layers", always + 2 * layer),
        ("too little for two layers", always + 2 * layer - random.randint(1, layer)),
    )
    name = f"{layers} layers of {layer:,} bytes, {'tied' if tied else 'untied'}, {always:,} bytes always there"
    chosen = random.sample(budgets, 3) if tied else budgets
    return [Case(f"a GPU with {label} ({name})", {**inputs, "budget": budget}) for label, budget in chosen]


def _figures(inputs: dict[str, Any]) -> tuple[int, int, int, dict[str, Any]]:
    """What is always there, how much of that is working space, bytes of a layer, the config: by a simulated run."""
    import torch

    from xinfer_lab.device.gpu_spec import GPU_SPECS
    from xinfer_lab.device.simulated import SimulatedDevice
    from xinfer_lab.qwen2.layout import layer_layout, resident_tensors
    from xinfer_lab.residency.model import QwenModel
    from xinfer_lab.residency.resident import ResidentLayers
    from xinfer_lab.residency.weights import SizedWeights

    config = spec_of(inputs).config()
    layout, layers = layer_layout(config), config.num_hidden_layers
    with SimulatedDevice(GPU_SPECS["laptop"], check=False) as device:
        model = QwenModel(
            SizedWeights(config),
            device,
            lambda device, weights: ResidentLayers(device, layout, config.dtype, layers, None),
            batch=inputs["batch"],
            context=inputs["context"],
        )
        for tokens in (prompt_of(inputs), torch.zeros(inputs["batch"], 1, dtype=torch.int64, device="cpu")):
            model.forward(tokens)
        peak = device.memory.use().peak
        model.close()
    always = peak - layers * layout.nbytes
    itemsize = config.dtype.itemsize
    cache = 2 * layers * config.num_key_value_heads * config.head_dim * inputs["context"] * inputs["batch"] * itemsize
    data = config.to_dict()
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    small = {key: data[key] for key in (*keys, "vocab_size", "tie_word_embeddings", "torch_dtype")}
    return always, always - resident_tensors(config).weight_nbytes - cache, layout.nbytes, small
