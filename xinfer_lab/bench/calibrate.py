"""Measures the figures of a card: its link in both directions, its rates, and what launching costs.

The virtual clock then predicts every row from these figures. A prediction that is off shows that something is not
understood, which a benchmark of times alone would not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.measure import prompt_of
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.gpu_spec import KERNEL_COPY, GpuSpec
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.kernels import Cost
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.device.records import Dispatch
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.kernels import DECODER_LAYER
from xinfer_lab.residency.model import QwenModel

__all__ = [
    "LINK_SIZES",
    "flop_rates",
    "launch_gap",
    "measure_link",
    "measure_pageable_rate",
    "measure_pinned_rate",
    "measure_spec",
    "submit_time",
]

LINK_SIZES = (2**21, 2**26, 2**30)
"""Bytes of single copies: a page, a tensor, a layer."""

_REPEATS = 5
_WARM = 2.0
"""Seconds of computing before the FLOP rate is taken."""

_BUSY = 0.5
"""Seconds of computing before what is short is measured."""


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
    rates = {}
    for size in LINK_SIZES:
        rates[f"to device, pinned, {size >> 20} MiB"] = size / _seconds(
            lambda size=size: there[:size].copy_(pinned.tensor[:size], non_blocking=True)  # type: ignore[misc]
        )
    rates["to host, pinned, 1024 MiB"] = largest / _seconds(lambda: other.tensor.copy_(back, non_blocking=True))
    rates["both ways together, pinned, 1024 MiB"] = (
        2 * largest / _seconds(lambda: _both_ways(there, pinned, back, other))
    )
    start = time.perf_counter()
    copy_bytes(other.tensor, pinned.tensor)
    rates["host memory to pinned memory, several threads"] = largest / (time.perf_counter() - start)
    # Of huge pages, as the layers have: memory of small ones is slower to read.
    other.unpin()
    rates["to device, pageable, 1024 MiB"] = largest / _seconds(lambda: there.copy_(other.tensor))
    pinned.close()
    other.close()
    return rates


def measure_pinned_rate(device: torch.device, size: int = LINK_SIZES[-1]) -> float:
    """Bytes a second of single copies of ``size`` bytes from pinned memory to the device, now."""
    there, pinned = torch.empty(size, dtype=torch.uint8, device=device), PinnedMemory(size)
    rate = size / _seconds(lambda: there.copy_(pinned.tensor, non_blocking=True))
    pinned.close()
    return rate


def measure_pageable_rate(device: torch.device, memories: Sequence[torch.Tensor]) -> float:
    """Bytes a second of copies of whole ``memories``, which are pageable, to the device, one after another.

    Measures the memory that will be copied: how fast a core reads it depends on its pages and where they are, and
    another GiB of pageable memory may be a fifth slower.
    """
    there = torch.empty(max(memory.numel() for memory in memories), dtype=torch.uint8, device=device)
    rates = []
    for memory in memories:
        rates.append(memory.numel() / _seconds(lambda memory=memory: there[: memory.numel()].copy_(memory)))  # type: ignore[misc]
    return float(statistics.median(rates))


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


def measure_spec(
    config: Qwen2Config, device: torch.device, link: dict[str, float], prefills: Sequence[int] = (8192,)
) -> GpuSpec:
    """The card's `GpuSpec`, for the virtual clock.

    The FLOP rates are those of a decoder layer of ``config`` over the fewest and the most tokens of ``prefills`` (half
    as many and twice, where these are the same), after seconds of nothing else: a cold card is faster than one that its
    power limit holds back. The memory rate is that of a decode step over some of its layers. Launching and
    submitting are measured on layers too small to compute anything: what the GPU takes for their kernels when they wait
    in line, and what the host takes to hand them over. Call it where the rows will be measured, with as much memory
    pinned: a machine's cores may be slower then.
    """
    small, large = (link[f"to device, pinned, {size >> 20} MiB"] for size in (LINK_SIZES[0], LINK_SIZES[-1]))
    fewest, most = min(prefills), max(prefills)
    if fewest == most:
        fewest, most = max(1, fewest // 2), 2 * most
    few, many = (_layer_seconds(config, device, count) for count in (fewest, most))
    (gap, tail), submit = launch_gap(config, device), submit_time(config, device)
    plain, pairs = flop_rates(few, many, gap)
    return GpuSpec(
        name=f"{torch.cuda.get_device_name(device)}, as measured",
        memory_bytes=torch.cuda.get_device_properties(device).total_memory,
        link_bandwidth=large,
        # What a small copy takes beyond its bytes.
        link_latency=max(0.0, LINK_SIZES[0] / small - LINK_SIZES[0] / large),
        flops=plain,
        memory_bandwidth=_memory_rate(config, device, gap, tail),
        launch_time=0.0,
        launch_gap=gap,
        pair_flops=pairs,
        host_bandwidth=link["host memory to pinned memory, several threads"],
        submit_time=submit,
        kernel_copy=KERNEL_COPY,
    )


def flop_rates(few: tuple[Cost, float], many: tuple[Cost, float], gap: float) -> tuple[float, float]:
    """FLOPs a second of matrix products, and of attention over its pairs of query and key, from what two layers cost
    and the seconds that they took: over ``many`` tokens a larger share of them is attention's.

    ``gap``: seconds of each launch. One rate for both where the two say nothing of a second one.
    """
    (few_cost, few_seconds), (many_cost, many_seconds) = few, many
    few_seconds, many_seconds = few_seconds - gap * few_cost.launches, many_seconds - gap * many_cost.launches
    few_plain, many_plain = few_cost.flops - few_cost.pair_flops, many_cost.flops - many_cost.pair_flops
    # Seconds a FLOP of each kind, by Cramer's rule.
    determinant = few_plain * many_cost.pair_flops - many_plain * few_cost.pair_flops
    if determinant > 0:
        plain = (few_seconds * many_cost.pair_flops - many_seconds * few_cost.pair_flops) / determinant
        pairs = (few_plain * many_seconds - many_plain * few_seconds) / determinant
        if plain > 0 and pairs > 0:
            return 1 / plain, 1 / pairs
    one = many_cost.flops / max(many_seconds, 1e-9)
    return one, one


_STEP_BYTES = 4 * 10**9
"""Bytes of layers that a decode step reads when its memory rate is taken: many times what a cache holds."""


def _memory_rate(config: Qwen2Config, device: torch.device, gap: float, tail: float) -> float:
    """Bytes of device memory a second in a decode step of layers of ``config``, beyond ``gap`` seconds a launch and
    ``tail`` at its end.

    Not more than a large product alone reaches: where the launches are nearly all of the time, a step says little.
    """
    layer = layer_layout(config, config.num_hidden_layers - 1).nbytes
    layers = max(2, min(config.num_hidden_layers, -(-_STEP_BYTES // layer)))
    few = dataclasses.replace(config, num_hidden_layers=layers, vocab_size=1024)
    with _opened(few, device) as model:
        seconds = _step_seconds(model)
        costs = _costs_of_a_step(model)
    size = sum(cost.bytes for cost in costs)
    reading = seconds - tail - gap * sum(cost.launches for cost in costs)
    return min(size / max(reading, 1e-9), _product_rate(config, device))


def _product_rate(config: Qwen2Config, device: torch.device) -> float:
    """Bytes of device memory a second in the product of 1 GiB of weights with one row."""
    size = config.hidden_size
    gate, up = (torch.randn(2**28 // size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    row = torch.randn(1, size, device=device, dtype=torch.bfloat16)
    _keep_busy(device)
    if (fused := fused_for(row)) is not None:
        return 2 * gate.nbytes / _seconds(lambda: fused.gated_products(row, gate, up))
    return gate.nbytes / _seconds(lambda: torch.nn.functional.linear(row, gate))


def _layer_seconds(config: Qwen2Config, device: torch.device, tokens: int) -> tuple[Cost, float]:
    """What a layer over ``tokens`` tokens costs, and the seconds that it takes once the card is warm."""
    # Several layers a pass: between passes the card would rest, and cool down.
    few = dataclasses.replace(config, num_hidden_layers=4, vocab_size=1024)
    opened = CudaDevice(device.index or 0, measure=True)
    weights = DrawnWeights(few, device)
    with opened, QwenModel(weights, opened, resident_layers(), context=tokens, chunk=tokens) as model:
        # Tokens that differ: on equal rows a matrix product takes less power, and a warm card is faster.
        prompt = prompt_of(few, tokens)
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


_IN_LINE = (4, 16)
"""Layers whose launches a stream takes without making the host wait for room: it holds about a thousand, which are 16
layers where each launch is submitted alone."""


def submit_time(config: Qwen2Config, device: torch.device) -> float:
    """Seconds that the host takes for one launch, from as many layers as ``config`` has that hardly compute anything.

    What a pass does besides launching is spread over its launches.
    """
    with _opened(_tiny(config, config.num_hidden_layers), device) as model:
        times = []
        for _ in range(4 * _REPEATS):
            start = time.perf_counter()
            _decode_step(model)
            times.append(time.perf_counter() - start)
        return statistics.median(times[_REPEATS:]) / sum(cost.launches for cost in _costs_of_a_step(model))


def launch_gap(config: Qwen2Config, device: torch.device) -> tuple[float, float]:
    """Seconds that the GPU takes for one launch of a kernel that hardly computes anything, and what else there is in
    the seconds of a step: from its last kernel to when the host has read the logits."""
    seconds, launches = [], []
    for layers in _IN_LINE:
        with _opened(_tiny(config, layers), device) as model:
            seconds.append(_step_seconds(model))
            launches.append(sum(cost.launches for cost in _costs_of_a_step(model)))
    gap = max(0.0, (seconds[1] - seconds[0]) / (launches[1] - launches[0]))
    return gap, max(0.0, seconds[0] - gap * launches[0])


def _step_seconds(model: QwenModel) -> float:
    """Seconds from the first kernel of a decode step of ``model`` to when the host has its logits. The GPU sleeps until
    all is submitted, so that what the host takes for that is not among them."""
    opened = model.device
    assert isinstance(opened, CudaDevice)
    _keep_busy(opened.torch_device)
    start = time.perf_counter()
    for _ in range(_REPEATS):
        _decode_step(model)
    submitting = (time.perf_counter() - start) / _REPEATS
    times = []
    for _ in range(_REPEATS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(opened.stream_of("direct")):
            torch.cuda._sleep(int(2e9 * (2 * submitting + 0.01)))
            first.record()
            _decode_step(model)
            last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) / 1e3)
    return float(statistics.median(times))


def _keep_busy(device: torch.device) -> None:
    """Compute for a while: a card that has rested begins with slower clocks than a run has."""
    square = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
    end = time.perf_counter() + _BUSY
    while time.perf_counter() < end:
        torch.mm(square, square)
        torch.cuda.synchronize(device)


def _tiny(config: Qwen2Config, layers: int) -> Qwen2Config:
    return dataclasses.replace(
        config, num_hidden_layers=layers, hidden_size=256, intermediate_size=512, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=1024, head_dim=128,
    )  # fmt: skip


@contextlib.contextmanager
def _opened(config: Qwen2Config, device: torch.device) -> Iterator[QwenModel]:
    opened = CudaDevice(device.index or 0)
    with opened, QwenModel(DrawnWeights(config, device), opened, resident_layers(), context=64, chunk=8) as model:
        _decode_step(model)
        yield model


def _decode_step(model: QwenModel) -> None:
    model.forward(torch.zeros(1, 1, dtype=torch.int64, device="cpu"))


def _costs_of_a_step(model: QwenModel) -> list[Cost]:
    """Run one more decode step; what its dispatches cost."""
    device = model.device
    first = len(device.stream)
    _decode_step(model)
    dispatches = [record for record in device.stream.records[first:] if isinstance(record, Dispatch)]
    return [device.kernels[r.kernel].cost(r.operands, r.params) for r in dispatches]
