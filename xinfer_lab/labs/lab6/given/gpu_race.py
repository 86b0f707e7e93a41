"""Lab 6 on a real GPU: a plan for a made-up model, run by the same executors, measured and held against its bound."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from xinfer_lab.bench.calibrate import measure_pinned_rate
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.encoded_store import EncodedStore
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.labs.lab6.pieces import plan_of
from xinfer_lab.labs.lab6.planned_case import CODEC, DEPTH
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.codec.format import decode_workspace
from xinfer_lab.residency.factories import SourceFactory, compressed_layers, planned_layers, resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, parity_line

__all__ = ["race_on_gpu"]

SPEC = SyntheticSpec(
    layers=12, hidden=4096, heads=32, kv_heads=4, intermediate=12288, vocab=4096, dtype="bfloat16", tied=False
)
"""Layers so large that a step of those that stream takes the link longer than it takes the host to submit."""
STEPS, WARM, ROOM = 12, 3, 6.5


def race_on_gpu(plan: Callable[[Mapping[str, Any]], Any], bound: Callable[..., Mapping[str, Any]]) -> str:
    """What ``plan`` reaches on this machine's GPU, in a few lines: the measured step, the student's own ``bound`` for
    it, and whether the logits equal the resident run's.

    The model has 12 layers of about 380 MB; the budget has room for half of them. Needs CUDA, 5 GiB of device memory
    and 8 GiB of host memory.
    """
    config = SPEC.config()
    weights = DrawnWeights(config, "cuda")
    coded = EncodedStore(weights, CODEC)
    try:
        return _race(plan, bound, config, weights, coded)
    finally:
        coded.close()


def _race(plan: Any, bound: Any, config: Qwen2Config, weights: DrawnWeights, coded: EncodedStore) -> str:
    expected, t_pass, peak = _run(weights, resident_layers(), None)
    _, t_coded, _ = _run(weights, compressed_layers(coded, ()), None)
    layer, layers = layer_layout(config).nbytes, config.num_hidden_layers
    always = peak - layers * layer
    sizes = [table.nbytes for table in coded.layers]
    largest = max(tensor.count for table in coded.layers for tensor in table.tensors)
    link = measure_pinned_rate(torch.device("cuda"))
    needs: dict[str, Any] = {
        "layers": layers,
        "budget": always + int(ROOM * layer),
        "pinned": 2 * layers * layer,
        "ring": DEPTH,
        "link": link,
        "memcpy": link / 2,
        "t_pass": t_pass,
        "forms": {
            "plain": {"layer_bytes": layer, "always": always, "t_decode": 0.0},
            "coded": {
                "layer_bytes": max(sizes),
                "always": always + layer + decode_workspace(largest),
                "t_decode": max(0.0, t_coded - t_pass) / layers,
            },
        },
    }
    decision = plan(needs)
    kept, host = plan_of(decision, needs)
    encoded = None if kept.compress == "none" else coded
    logits, seconds, peak = _run(weights, planned_layers(kept, host, encoded=encoded), needs["budget"])
    # The host submits faster at one time than at another: what bounds the step is the faster one.
    t_pass = min(t_pass, _run(weights, resident_layers(), None)[1])
    figures = needs["forms"][decision["form"]]
    computing = t_pass + layers * figures["t_decode"]
    moved = len(kept.streamed) * figures["layer_bytes"]
    least = bound(computing, moved, link, needs["memcpy"] if host == "staged" else None)
    return "\n".join(
        (
            f"{torch.cuda.get_device_name()}, link {link / 1e9:.1f} GB/s, all resident {t_pass * 1e3:.2f} ms a step",
            f"{len(kept.streamed)} of {layers} layers stream, {decision['form']}, {kept.slots} slots, {host}",
            f"a step: {seconds * 1e3:.2f} ms, bound {least['time'] * 1e3:.2f} ms ({least['binds']} binds): "
            f"bound / time = {least['time'] / seconds:.2f}",
            f"{peak:,} of {needs['budget']:,} bytes; {parity_line(compare_logits(expected, logits)[1])}",
        )
    )


def _run(weights: DrawnWeights, make: SourceFactory, budget: int | None) -> tuple[list[torch.Tensor], float, int]:
    """Logits of each pass, the median seconds of a step once it is warm, and the peak of device memory."""
    logits, seconds = [], []
    with CudaDevice(memory=budget) as device:
        model = QwenModel(weights, device, make, context=STEPS, chunk=1)
        weights.forget()
        model.begin(STEPS)
        for number in range(STEPS):
            start = time.perf_counter()
            logits.append(model.forward(torch.tensor([[number]], device="cpu")))
            seconds.append(time.perf_counter() - start)
        peak = device.memory.use().peak
        model.close()
    return logits, statistics.median(seconds[WARM:]), peak
