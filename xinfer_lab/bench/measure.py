"""Runs one residency at the workloads of a benchmark and makes a row of the result."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.bench.rows import Row, Timing
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.records import Copy
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.factories import SourceFactory, resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits
from xinfer_lab.residency.weights import ModelWeights, SizedWeights

__all__ = [
    "Logits",
    "Measured",
    "Workload",
    "card_seconds",
    "empty_cache",
    "measure_model",
    "predict_model",
    "prompt_of",
    "row_of",
    "run_passes",
]

Logits = list[torch.Tensor]
"""Of each pass, on the host."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Passes over ``tokens`` new tokens each, ``passes`` of them timed.

    A prefill (``tokens`` over 1) begins a new sequence each time; a decode step follows a prompt of ``prompt`` tokens
    and the steps before. One more pass warms up, unless ``warm`` is False: then what came before has to do. Once the
    timed passes have taken ``limit`` seconds, no further one begins. ``label``: what it is called, if not by its kind.
    """

    tokens: int
    passes: int
    prompt: int = 0
    warm: bool = True
    limit: float = float("inf")
    label: str = ""

    @property
    def name(self) -> str:
        """Its label; without one ``decode``, or ``prefill`` and its tokens."""
        return self.label or (f"prefill {self.tokens}" if self.tokens > 1 else "decode")

    @property
    def context(self) -> int:
        """Tokens that the cache needs room for; one pass more than are timed warms up."""
        return self.tokens if self.tokens > 1 else self.prompt + self.passes + 1

    @property
    def chunk(self) -> int:
        """The most tokens of one pass."""
        return max(self.tokens, self.prompt)


@dataclass(frozen=True, slots=True)
class Measured:
    """One model at one workload: ``seconds`` of each timed pass and its ``logits``, bytes of weights ``moved`` a pass
    (None: not known), and of device memory: ``peak`` as torch's allocator saw it and ``planned`` as the device counted
    (None where there is no such figure). ``note``: a remark."""

    seconds: tuple[float, ...]
    logits: Logits
    moved: int | None
    peak: int | None
    planned: int | None
    note: str = ""


def prompt_of(config: Qwen2Config, tokens: int) -> torch.Tensor:
    """Token ids [1, tokens], the same each time."""
    return torch.randint(
        0, config.vocab_size, (1, tokens), generator=torch.Generator().manual_seed(tokens), device="cpu"
    )


def run_passes(
    workload: Workload,
    config: Qwen2Config,
    forward: Callable[[torch.Tensor], torch.Tensor],
    reset: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[tuple[float, ...], Logits]:
    """Seconds of the timed passes of ``workload``, and the logits of all. ``forward`` blocks until they are there."""
    seconds: list[float] = []
    logits: Logits = []
    if workload.tokens == 1 and workload.prompt:
        forward(prompt_of(config, workload.prompt))
    for number in range(workload.passes + workload.warm):
        if sum(seconds) >= workload.limit:
            break
        if workload.tokens > 1:
            reset()
        tokens = prompt_of(config, workload.tokens) if workload.tokens > 1 else torch.tensor([[number]], device="cpu")
        start = clock()
        logits.append(forward(tokens))
        if number > 0 or not workload.warm:
            seconds.append(clock() - start)
    return tuple(seconds), logits


def measure_model(
    weights: ModelWeights,
    factory: SourceFactory,
    workload: Workload,
    open_device: Callable[[], Device],
    *,
    host_embedding: bool = False,
    arguments: Mapping[str, Any] | None = None,
    note: Callable[[QwenModel], str] | None = None,
    on_demand: bool = False,
) -> Measured:
    """Open a device and a model on it, run ``workload``, close both. The first pass is not timed.

    ``arguments`` are further ones of `QwenModel`; ``note`` is asked at the end. Bytes moved are the mean of all passes,
    since each fetches for the next; ``on_demand``: of those that are timed, which fetch for themselves.
    """
    empty_cache()
    with open_device() as device, _model(weights, device, factory, workload, host_embedding, arguments) as model:
        _forget(weights)
        _reset_peak(device)
        before = workload.warm + (workload.tokens == 1 and workload.prompt > 0)
        model.begin(workload.passes + before)
        # A first pass may load kernels, which takes far longer than running them; a later one has nothing to move left.
        starts: list[int] = []

        def forward(tokens: torch.Tensor) -> torch.Tensor:
            starts.append(len(device.stream))
            return model.forward(tokens)

        seconds, logits = run_passes(workload, weights.config, forward, model.reset)
        # A limit may have ended the run early.
        counted = starts[before:] if on_demand else starts
        moved = _moved(device, counted[0]) // len(counted)
        peak, planned = _peaks(device)
        return Measured(seconds, logits, moved, peak, planned, note(model) if note else "")


def _model(
    weights: ModelWeights,
    device: Device,
    factory: SourceFactory,
    workload: Workload,
    host_embedding: bool,
    arguments: Mapping[str, Any] | None,
) -> QwenModel:
    return QwenModel(
        weights, device, factory, context=workload.context, chunk=workload.chunk, host_embedding=host_embedding,
        **(arguments or {}),
    )  # fmt: skip


def _moved(device: Device, first: int) -> int:
    """Bytes that the copy queues of all cards move from record ``first`` on."""
    later, queues = device.stream.records[first:], {node.copy_queue.name for node in device.nodes}
    return sum(record.dst.size for record in later if isinstance(record, Copy) and record.queue in queues)


def predict_model(
    config: Qwen2Config,
    factory: SourceFactory,
    workload: Workload,
    spec: GpuSpec,
    *,
    host_embedding: bool = False,
    arguments: Mapping[str, Any] | None = None,
    cards: int = 1,
) -> float:
    """Seconds of a pass of ``workload`` on ``cards`` cards by the virtual clock, in the middle of a run."""
    device = SimulatedDevice(spec, memory=None, check=False, nodes=cards)
    with device, _model(SizedWeights(config), device, factory, workload, host_embedding, arguments) as model:
        short = Workload(workload.tokens, 2, workload.prompt)
        model.begin(6)
        seconds, _ = run_passes(short, config, model.forward, model.reset, lambda: device.now)
        return seconds[-1]


def card_seconds(config: Qwen2Config, workload: Workload, spec: GpuSpec, arguments: Mapping[str, Any]) -> float:
    """Seconds that the card of ``spec`` takes for a pass of ``workload`` with everything resident, by bytes and FLOPs.

    Each dispatch takes the longer of its FLOPs and its bytes of device memory at the card's rates; launches, the host
    and the link take nothing. No program is faster that reads each operand once.
    """
    ideal = dataclasses.replace(
        spec, launch_time=0.0, launch_gap=0.0, submit_time=0.0, link_latency=0.0, link_bandwidth=float("inf"),
        host_bandwidth=float("inf"),
    )  # fmt: skip
    made = {name: value for name, value in arguments.items() if name not in ("make_cache", "make_experts")}
    return predict_model(config, resident_layers(), workload, ideal, arguments=made)


def row_of(
    name: str,
    workload: Workload,
    measured: Measured,
    reference: Logits | None,
    *,
    predicted: float | None = None,
    bound: float | None = None,
    peer: bool = False,
    note: str = "",
) -> Row:
    """The row of ``measured``, compared with the logits ``reference`` of the resident run."""
    difference = None
    if reference is not None:
        # A row with a limit may have fewer passes than the others.
        both = min(len(reference), len(measured.logits))
        difference = compare_logits(reference[:both], measured.logits[:both])[1]
    return Row(
        name=name,
        workload=workload.name,
        timing=Timing.of(measured.seconds),
        moved=measured.moved,
        peak=measured.peak,
        planned=measured.planned,
        difference=difference,
        predicted=predicted,
        bound=bound,
        peer=peer,
        note=note or measured.note,
    )


def empty_cache() -> None:
    """Give back unused memory, including what torch keeps for the next allocation."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _forget(weights: ModelWeights) -> None:
    """Weights that are drawn on the GPU keep the last tensor there, which is no memory of the model."""
    forget = getattr(weights, "forget", None)
    if callable(forget):
        forget()


def _reset_peak(device: Device) -> None:
    if isinstance(device, CudaDevice):
        torch.cuda.empty_cache()
        for card in device.cards:
            torch.cuda.reset_peak_memory_stats(card)


def _peaks(device: Device) -> tuple[int | None, int]:
    """Bytes at most in use on the fullest card, as torch saw it (None: not known) and as the device counted."""
    peaks = [memory.use().peak for memory in device.memories]
    if not isinstance(device, CudaDevice):
        return None, max(peaks)
    counted = dict.fromkeys(device.cards, 0)
    for card, peak in zip(device.cards, peaks, strict=True):
        counted[card] += peak
    fullest = max(counted, key=lambda card: counted[card])
    return torch.cuda.max_memory_allocated(fullest), counted[fullest]
