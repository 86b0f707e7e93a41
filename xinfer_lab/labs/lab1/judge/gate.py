"""Judges Lab 1's gate: a decision is right when the real executors load and run with it.

It has to stay within the budget and give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Difference, Judge, Outcome
from xinfer_lab.labs.lab1.gate import STEPS, prompt_of, spec_of
from xinfer_lab.labs.lab1.judge.decision import decide, same_decision

if TYPE_CHECKING:
    from xinfer_lab.device.device import Device
    from xinfer_lab.qwen2.synthetic import SyntheticSpec
    from xinfer_lab.residency.model import QwenModel
    from xinfer_lab.residency.parity import Run

__all__ = ["GATE", "try_decision"]

Inputs = Mapping[str, Value]


def _sizes(inputs: Inputs) -> dict[str, int]:
    from xinfer_lab.qwen2.layout import layer_layout, resident_tensors

    config = spec_of(inputs).config()
    cache = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * config.dtype.itemsize
    always = resident_tensors(config).nbytes + cache * inputs["context"] * inputs["batch"] + inputs["working"]
    return {"layers": config.num_hidden_layers, "layer": layer_layout(config).nbytes, "always": always}


def _truth(inputs: Inputs) -> Value:
    return decide({"sizes": _sizes(inputs), "budget": inputs["budget"]})


def _loader(spec: SyntheticSpec, context: int, batch: int, decision: str | int) -> Callable[[Device], QwenModel]:
    from xinfer_lab.qwen2.layout import layer_layout
    from xinfer_lab.residency.host import PinnedLayers
    from xinfer_lab.residency.model import QwenModel
    from xinfer_lab.residency.resident import ResidentLayers
    from xinfer_lab.residency.streaming import StreamingLayers
    from xinfer_lab.residency.weights import SyntheticWeights

    config = spec.config()
    layout, layers = layer_layout(config), config.num_hidden_layers

    def source(device: Device, weights: object) -> Any:
        if decision == "resident":
            return ResidentLayers(device, layout, config.dtype, layers)
        host = PinnedLayers(device, layout, layers)
        return StreamingLayers(device, layout, config.dtype, host, layers, int(decision))

    return lambda device: QwenModel(SyntheticWeights(config, spec.seed), device, source, batch=batch, context=context)


@lru_cache(maxsize=16)
def _reference(spec: SyntheticSpec, context: int, batch: int, prompt: int) -> Run:
    """The resident run on a GPU without a limit."""
    from xinfer_lab.device.emulated import EmulatedDevice
    from xinfer_lab.residency.parity import greedy_run

    tokens = prompt_of({"spec": {"vocab": spec.vocab}, "batch": batch, "prompt": prompt})
    with EmulatedDevice(check=False) as device:
        return greedy_run(_loader(spec, context, batch, "resident"), device, tokens, STEPS)


@lru_cache(maxsize=256)
def _trouble(
    spec: SyntheticSpec, context: int, batch: int, prompt: int, budget: int, decision: str | int
) -> str | None:
    from xinfer_lab.device.emulated import EmulatedDevice
    from xinfer_lab.device.errors import OutOfDeviceMemory
    from xinfer_lab.residency.parity import compare_logits, run_fixed

    reference = _reference(spec, context, batch, prompt)
    try:
        with EmulatedDevice(memory=max(1, budget)) as device:
            run = run_fixed(_loader(spec, context, batch, decision), device, reference.tokens)
    except OutOfDeviceMemory as error:
        asked = f"{error.requested:,} bytes are asked for when {max(0, budget - error.used):,} are free"
        return f"Loaded with {decision!r}, this GPU runs out of memory: {asked}."
    if run.memory.peak > budget:
        return f"Loaded with {decision!r}, the peak is {run.memory.peak:,} bytes."
    equal, largest = compare_logits(reference.logits, run.logits)
    if not equal or run.hazards or run.state_faults:
        return f"Loaded with {decision!r}, the logits differ from the resident ones by {largest}."
    return None


def try_decision(inputs: Inputs, decision: Value) -> str | None:
    """What goes wrong when the model is loaded by ``decision`` and run within the budget; None if nothing, or no
    decision."""
    if decision != "resident" and (type(decision) is not int or not 1 <= decision <= 1000):
        return None
    model = spec_of(inputs), inputs["context"], inputs["batch"], inputs["prompt"]
    return _trouble(*model, inputs["budget"], decision)


def _also(inputs: Inputs, outcome: Outcome) -> Difference | None:
    trouble = None if outcome.raised else try_decision(inputs, outcome.value)
    if trouble is None:
        return None
    return Difference("", "a run within the budget", trouble, "The model does not run with this decision.")


def _tried(inputs: Inputs, outcome: Outcome) -> str:
    trouble = None if outcome.raised else try_decision(inputs, outcome.value)
    parts = (
        "The plan is made of layer_bytes, model_bytes, kv_cache_bytes and decide_residency: their own checks say more."
    )
    return f"{trouble} {parts}" if trouble else parts


def _call(case: Case) -> str:
    return f"plan with a budget of {case.inputs['budget']:,} bytes: {case.label}"


GATE = Judge(
    truth=_truth,
    passed="Loaded by your decision on every GPU: within budget, streaming vs resident max abs diff = 0.",
    noun="decision",
    call=_call,
    compare=same_decision,
    also=_also,
    tried=_tried,
    keeps_inputs=False,
)
