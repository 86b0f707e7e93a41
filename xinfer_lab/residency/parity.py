"""The parity check: the same tokens through a resident model and another residency, compared byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.memory import MemoryUse
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.residency.model import QwenModel

__all__ = [
    "Difference",
    "ParityReport",
    "Run",
    "compare_logits",
    "first_difference",
    "first_not_finite",
    "greedy_run",
    "parity_line",
    "run_fixed",
    "same_bytes",
]

Opener = Callable[[Device], QwenModel]
"""Loads a model onto a device."""


@dataclass(frozen=True)
class Run:
    """One run: ``tokens`` fed to each pass [B, T], ``logits`` of each, and what the device has to say about it."""

    tokens: tuple[torch.Tensor, ...]
    logits: tuple[torch.Tensor, ...]
    memory: MemoryUse
    hazards: tuple[str, ...]
    state_faults: tuple[str, ...]
    timeline: Timeline | None
    uploads: int
    first_record: int


@dataclass(frozen=True)
class Difference:
    """Where two runs part: pass number ``step``, layer ``layer`` (None: only the logits differ)."""

    step: int
    layer: int | None

    def __str__(self) -> str:
        where = f"after layer {self.layer}" if self.layer is not None else "in the logits"
        return f"first difference in step {self.step}, {where}"


@dataclass(frozen=True)
class ParityReport:
    """``equal`` is True only if all bytes are equal and none of them is NaN; ``max_abs_diff``: see `compare_logits`."""

    equal: bool
    max_abs_diff: float
    difference: Difference | None


def parity_line(max_abs_diff: float, name: str = "streaming") -> str:
    """The line that sums it all up. ``0`` only for exactly equal results."""
    return f"{name} vs resident max abs diff = {max_abs_diff:.9g}"


def _passes(model: QwenModel, prompt: torch.Tensor, steps: int, feed: Sequence[torch.Tensor] | None) -> Any:
    tokens: list[torch.Tensor] = []
    logits: list[torch.Tensor] = []
    model.begin(steps)
    current = prompt
    for step in range(steps):
        if feed is not None:
            current = feed[step]
        tokens.append(current)
        logits.append(model.forward(current))
        current = logits[-1][:, -1].argmax(-1, keepdim=True)
    return tokens, logits


def greedy_run(open_model: Opener, device: Device, prompt: torch.Tensor, steps: int) -> Run:
    """Run ``prompt`` [B, T] and then ``steps - 1`` greedily chosen tokens. Closes the model, not the device."""
    return _run(open_model, device, prompt, steps, None)


def run_fixed(open_model: Opener, device: Device, feed: Sequence[torch.Tensor]) -> Run:
    """Run exactly the tokens of ``feed``, one entry a pass: what another run chose. Closes the model, not the
    device.
    """
    return _run(open_model, device, feed[0], len(feed), feed)


def _run(
    open_model: Opener, device: Device, prompt: torch.Tensor, steps: int, feed: Sequence[torch.Tensor] | None
) -> Run:
    model = open_model(device)
    first = len(device.stream)
    tokens, logits = _passes(model, prompt, steps, feed)
    timeline = _timeline(device)
    memory = max((card.use() for card in device.memories), key=lambda use: use.peak)
    uploads = model.source.uploads
    model.close()
    found = device.findings()
    return Run(
        tokens=tuple(tokens),
        logits=tuple(logits),
        memory=memory,
        hazards=tuple(hazard.report() for hazard in found.hazards),
        state_faults=tuple(fault.report() for fault in found.state_faults),
        timeline=timeline,
        uploads=uploads,
        first_record=first,
    )


def _timeline(device: Device) -> Timeline | None:
    try:
        return device.timeline()
    except RuntimeError:
        return None  # a CUDA device that was not asked to measure


def same_bytes(resident: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether all bytes are equal, those of NaN and infinities too."""
    return len(resident) == len(other) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
        for a, b in zip(resident, other, strict=True)
    )


def compare_logits(resident: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> tuple[bool, float]:
    """Whether all bytes are equal and free of NaN, and the largest absolute difference.

    The difference is NaN where no number fits: a NaN is there, the two are not of the same shape, dtype or
    length, or bytes differ that compare as equal (0.0 and -0.0). So it is 0 only for exactly equal results.
    """
    if len(resident) != len(other):
        return False, float("nan")
    equal, largest = True, 0.0
    for a, b in zip(resident, other, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False, float("nan")
        difference = (a.double() - b.double()).abs().max().item()
        # NaN compares as False with everything, so it is asked for by name.
        if difference != difference or a.isnan().any() or b.isnan().any():
            return False, float("nan")
        equal = equal and same_bytes([a], [b])
        largest = max(largest, difference)
    return equal, largest if equal or largest > 0 else float("nan")


def first_difference(
    open_resident: Opener, open_other: Opener, make_device: Callable[[], Device], feed: Sequence[torch.Tensor]
) -> Difference | None:
    """Run both again, looking at the hidden state after every layer; None if all of it is equal.

    Looking means that the host waits after every layer, which orders more than before: a race may hide from it, and
    then the first step whose logits differ is all that can be said.
    """
    records = [_layer_by_layer(open_model, make_device, feed) for open_model in (open_resident, open_other)]
    for step, (a, b) in enumerate(zip(*records, strict=True)):
        for layer, (x, y) in enumerate(zip(a, b, strict=True)):
            if not same_bytes([x], [y]):
                return Difference(step, layer if layer < len(a) - 1 else None)
    return None


def first_not_finite(
    open_model: Opener, make_device: Callable[[], Device], feed: Sequence[torch.Tensor]
) -> Difference | None:
    """Run again, as `first_difference` does: after which layer a NaN or an infinity is there first; None if nowhere."""
    for step, states in enumerate(_layer_by_layer(open_model, make_device, feed)):
        for layer, state in enumerate(states):
            if not state.isfinite().all():
                return Difference(step, layer if layer < len(states) - 1 else None)
    return None


def _layer_by_layer(
    open_model: Opener, make_device: Callable[[], Device], feed: Sequence[torch.Tensor]
) -> list[list[torch.Tensor]]:
    """For each pass the hidden state after every layer, and last the logits."""
    passes = []
    with make_device() as device:
        model = open_model(device)
        model.begin(len(feed))
        for tokens in feed:
            seen: list[torch.Tensor] = []
            logits = model.forward(tokens, on_layer=lambda _, hidden, seen=seen: seen.append(hidden))  # type: ignore[misc]
            passes.append([*seen, logits])
        model.close()
    return passes
