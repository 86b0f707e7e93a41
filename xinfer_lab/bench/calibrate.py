"""The figures of a card, measured on it: the link in both directions, its rates, and what launching costs."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable

import torch

from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.gpu_spec import KERNEL_COPY, GpuSpec
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.kernels import Cost
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.device.records import Dispatch
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.kernels import DECODER_LAYER
from xinfer_lab.residency.model import QwenModel

__all__ = ["LINK_SIZES", "measure_link", "measure_pinned_rate", "measure_spec"]

LINK_SIZES = (2**21, 2**26, 2**30)
"""Bytes of single copies: a page, a tensor, a layer."""

_REPEATS = 5
_WARM = 1.5
"""Seconds of computing before the FLOP rate is taken."""


def _seconds(work: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Median seconds of ``work`` on the current stream, by events; run once more before, to warm up."""
    times = []
    for _ in range(repeats + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(statistics.median(times[1:]))


def measure_link(device: torch.device) -> dict[str, float]:
    """Bytes a second of the link, by what was copied: pinned memory at `LINK_SIZES`, out and both ways at once, and
    pageable memory."""
    largest = max(LINK_SIZES)
    there, back = (torch.empty(largest, dtype=torch.uint8, device=device) for _ in range(2))
    pinned, other = PinnedMemory(largest), PinnedMemory(largest)
    pageable = torch.zeros(largest, dtype=torch.uint8)
    rates = {}
    for size in LINK_SIZES:
        rates[f"to device, pinned, {size >> 20} MiB"] = size / _seconds(
            lambda size=size: there[:size].copy_(pinned.tensor[:size], non_blocking=True)  # type: ignore[misc]
        )
    rates["to host, pinned, 1024 MiB"] = largest / _seconds(lambda: other.tensor.copy_(back, non_blocking=True))
    rates["both ways together, pinned, 1024 MiB"] = (
        2 * largest / _seconds(lambda: _both_ways(there, pinned, back, other))
    )
    rates["to device, pageable, 1024 MiB"] = largest / _seconds(lambda: there.copy_(pageable))
    start = time.perf_counter()
    copy_bytes(other.tensor, pageable)
    rates["host memory to pinned memory, several threads"] = largest / (time.perf_counter() - start)
    pinned.close()
    other.close()
    return rates


def measure_pinned_rate(device: torch.device, size: int = LINK_SIZES[-1]) -> float:
    """Bytes a second of single copies of ``size`` bytes from pinned memory to the device, now."""
    there, pinned = torch.empty(size, dtype=torch.uint8, device=device), PinnedMemory(size)
    rate = size / _seconds(lambda: there.copy_(pinned.tensor, non_blocking=True))
    pinned.close()
    return rate


def _both_ways(there: torch.Tensor, pinned: PinnedMemory, back: torch.Tensor, other: PinnedMemory) -> None:
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    current = torch.cuda.current_stream()
    for stream in streams:
        stream.wait_stream(current)
    with torch.cuda.stream(streams[0]):
        there.copy_(pinned.tensor, non_blocking=True)
    with torch.cuda.stream(streams[1]):
        other.tensor.copy_(back, non_blocking=True)
    for stream in streams:
        current.wait_stream(stream)


def measure_spec(config: Qwen2Config, device: torch.device, link: dict[str, float], tokens: int = 8192) -> GpuSpec:
    """The card's `GpuSpec`, for the virtual clock.

    The FLOP rate is that of a decoder layer of ``config`` over ``tokens`` tokens, after a second of nothing else: a
    cold card is faster than one that its power limit holds back. The memory rate is that of a product of 1 GiB of
    weights with one vector. Launching and submitting are measured on layers too small to compute anything: what the
    GPU takes for their kernels when they wait in line, and what the host takes to hand them over.
    """
    small, large = (link[f"to device, pinned, {size >> 20} MiB"] for size in (LINK_SIZES[0], LINK_SIZES[-1]))
    launch, submit = _launch_times(config, device)
    cost, seconds = _layer_seconds(config, device, tokens)
    return GpuSpec(
        name=f"{torch.cuda.get_device_name(device)}, as measured",
        memory_bytes=torch.cuda.get_device_properties(device).total_memory,
        link_bandwidth=large,
        # What a small copy takes beyond its bytes.
        link_latency=max(0.0, LINK_SIZES[0] / small - LINK_SIZES[0] / large),
        flops=cost.flops / max(seconds - launch * cost.launches, 1e-9),
        memory_bandwidth=_memory_rate(device),
        launch_time=0.0,
        launch_gap=launch,
        host_bandwidth=link["host memory to pinned memory, several threads"],
        submit_time=submit,
        kernel_copy=KERNEL_COPY,
    )


def _memory_rate(device: torch.device) -> float:
    weights = torch.randn(2**19, 2**10, device=device, dtype=torch.bfloat16)
    vector = torch.randn(1, 2**10, device=device, dtype=torch.bfloat16)
    return weights.nbytes / _seconds(lambda: torch.nn.functional.linear(vector, weights))


def _layer_seconds(config: Qwen2Config, device: torch.device, tokens: int) -> tuple[Cost, float]:
    """What a layer over ``tokens`` tokens costs, and the seconds that it takes once the card is warm."""
    one = dataclasses.replace(config, num_hidden_layers=1, vocab_size=1024)
    opened = CudaDevice(device.index or 0, measure=True)
    weights = DrawnWeights(one, device)
    with opened, QwenModel(weights, opened, resident_layers(), context=tokens, chunk=tokens) as model:
        prompt = torch.zeros(1, tokens, dtype=torch.int64)
        end = time.perf_counter() + _WARM
        while time.perf_counter() < end:
            model.reset()
            model.forward(prompt)
        layers = [event for event in opened.timeline().events if _is_layer(opened, event.record)]
        record = opened.stream[layers[-1].record]
        assert isinstance(record, Dispatch)
        warm = layers[len(layers) * 2 // 3 :]
        cost = DECODER_LAYER.cost(record.operands, record.params)
        return cost, float(statistics.median(event.duration for event in warm))


def _is_layer(device: CudaDevice, index: int) -> bool:
    record = device.stream[index]
    return isinstance(record, Dispatch) and record.kernel == DECODER_LAYER.name


def _launch_times(config: Qwen2Config, device: torch.device) -> tuple[float, float]:
    """Seconds of the GPU and of the host for one launch, from layers that hardly compute anything."""
    layers = 48
    tiny = dataclasses.replace(
        config, num_hidden_layers=layers, hidden_size=256, intermediate_size=512, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=1024, head_dim=128,
    )  # fmt: skip
    opened = CudaDevice(device.index or 0)
    with opened, QwenModel(DrawnWeights(tiny, device), opened, resident_layers(), context=64, chunk=8) as model:
        token = torch.zeros(1, 1, dtype=torch.int64)
        times = []
        for _ in range(4 * _REPEATS):
            start = time.perf_counter()
            model.forward(token)
            times.append(time.perf_counter() - start)
        submit = statistics.median(times[_REPEATS:])
        # The GPU sleeps until all is submitted, so that what follows is its own time alone.
        stream = opened._streams["direct"]
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream):
            torch.cuda._sleep(int(2e9 * (2 * submit + 0.01)))
            first.record(stream)
        model.forward(token)
        last.record(stream)
        last.synchronize()
        record = next(record for record in opened.stream if isinstance(record, Dispatch) and "kv" in record.operands)
        launches = layers * DECODER_LAYER.cost(record.operands, record.params).launches
        return first.elapsed_time(last) / 1e3 / launches, submit / launches
