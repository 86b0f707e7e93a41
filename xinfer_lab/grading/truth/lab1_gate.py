"""Lab 1: the gate. A decision is right when the real executors load and run with it, within budget and with the same bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.questions.lab1_gate import STEPS, prompt_of, spec_of
from xinfer_lab.grading.truth.lab1_decision import decide
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify import Difference, Judge, Outcome

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


@lru_cache(maxsize=4)
def _reference(spec: Any, context: int, batch: int, prompt: int) -> tuple[Any, ...]:
    """The resident run on a GPU without a limit, and the checkpoint's folder, which lives as long as this entry."""
    from xinfer_lab.device.emulated import EmulatedDevice
    from xinfer_lab.qwen2.synthetic import write_checkpoint
    from xinfer_lab.residency.model import QwenModel
    from xinfer_lab.residency.parity import greedy_run

    folder = tempfile.TemporaryDirectory(prefix="xinfer-lab-gate-", ignore_cleanup_errors=True)
    path = write_checkpoint(Path(folder.name) / "model", spec)
    first = prompt_of({"spec": {"vocab": spec.vocab}, "batch": batch, "prompt": prompt})
    with EmulatedDevice(check=False) as device:
        run = greedy_run(lambda on: QwenModel.load(path, on, batch=batch, context=context), device, first, STEPS)
    return run, path, folder


def try_decision(inputs: Inputs, decision: Value) -> str | None:
    """What goes wrong when the model is loaded with ``decision`` ("resident" or a pool) and run within the budget; None if nothing."""
    from xinfer_lab.device.emulated import EmulatedDevice
    from xinfer_lab.device.errors import OutOfDeviceMemory
    from xinfer_lab.residency.model import QwenModel
    from xinfer_lab.residency.parity import compare_logits, run_fixed

    if decision != "resident" and (type(decision) is not int or not 1 <= decision <= 10_000):
        return None
    context, batch = inputs["context"], inputs["batch"]
    reference, path, _ = _reference(spec_of(inputs), context, batch, inputs["prompt"])

    def load(device: Any) -> QwenModel:
        if decision == "resident":
            return QwenModel.load(path, device, batch=batch, context=context)
        return QwenModel.load_streaming(path, device, decision, batch=batch, context=context)

    try:
        with EmulatedDevice(memory=max(1, inputs["budget"])) as device:
            run = run_fixed(load, device, reference.tokens)
    except OutOfDeviceMemory as error:
        return f"Loaded with {decision!r}, this GPU runs out of memory: {error}"
    if run.memory.peak > inputs["budget"]:
        return f"Loaded with {decision!r}, the peak is {run.memory.peak:,} bytes."
    equal, largest = compare_logits(reference.logits, run.logits)
    if not equal or run.hazards or run.state_faults:
        return f"Loaded with {decision!r}, the logits differ from the resident ones by {largest}; {len(run.hazards)} hazards."
    return None


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
    also=_also,
    tried=_tried,
)
