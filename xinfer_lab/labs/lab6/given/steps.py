"""What binds a step: the host that submits, the link, or computing; on one card or several, from sizes alone.

Lab 6's explorations: the same model and executors as everywhere, on a device of sizes with the virtual clock.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass

import torch

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.kernels import Cost, Kernel, KernelTable, Operands, Params
from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.records import Copy, Dispatch
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import PUBLISHED, Qwen2Config
from xinfer_lab.residency.factories import streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import format_time
from xinfer_lab.views.value_bars import ValueBar, value_bars

__all__ = ["ONE_BY_ONE", "RECORDED", "StepTimes", "links_picture", "step_times", "what_binds", "with_cards"]

ONE_BY_ONE, RECORDED = 47, 1
"""Launches a layer: each operation of torch by itself, and one list that was recorded once (a CUDA graph)."""

_HEAD_ONE_BY_ONE = 9
CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of a steady step, and of what goes on in it side by side: ``computing`` (all cards in turn), the busiest
    ``link``, and the ``host``'s submitting of its ``launches``."""

    step: float
    computing: float
    link: float
    host: float
    launches: int

    @property
    def binds(self) -> str:
        """The longest of the three."""
        times = {"computing": self.computing, "the link": self.link, "the host": self.host}
        return max(times, key=lambda name: times[name])


def _launched(launches: int) -> KernelTable:
    """The kernels, with so many launches a layer."""
    counts = {"decoder_layer": launches, "lm_head": RECORDED if launches == RECORDED else _HEAD_ONE_BY_ONE}
    table = KernelTable()
    for name in KERNELS:
        kernel = KERNELS[name]
        table.register(_counted(kernel, counts[name]) if name in counts else kernel)
    return table


def _counted(kernel: Kernel, launches: int) -> Kernel:
    def cost(operands: Operands, params: Params) -> Cost:
        return dataclasses.replace(kernel.cost(operands, params), launches=launches)

    return dataclasses.replace(kernel, cost=cost)


def step_times(
    config: Qwen2Config, gpu: GpuSpec, *, tokens: int = 1, launches: int = RECORDED, cards: int = 1, slots: int = 2
) -> StepTimes:
    """A step in the middle of a run that streams every layer through ``slots`` slots a card; each step reads ``tokens``
    new tokens. ``cards``: layer i lives on card i mod ``cards``, each with a link of its own."""
    table = _launched(launches)
    context = max(CONTEXT, 4 * tokens)
    device = SimulatedDevice(gpu, memory=None, check=False, kernels=table, nodes=cards)
    with device:
        model = QwenModel(SizedWeights(config), device, streaming_layers(slots), context=context, chunk=tokens)
        model.begin(4)
        ends: list[float] = []
        records: list[int] = []
        for _ in range(3):
            model.forward(torch.zeros(1, tokens, dtype=torch.int64, device="cpu"))
            ends.append(device.now)
            records.append(len(device.stream))
        moved: dict[str, int] = defaultdict(int)
        computing, count = 0.0, 0
        for index in range(records[1], records[2]):
            record = device.stream[index]
            if isinstance(record, Dispatch):
                cost = table[record.kernel].cost(record.operands, record.params)
                computing += gpu.dispatch_time(cost)
                count += cost.launches
            elif isinstance(record, Copy) and record.queue == on_node("copy", node_of(record.queue)):
                moved[record.queue] += record.dst.size
        model.close()
    link = max(moved.values(), default=0) / gpu.link_bandwidth
    return StepTimes(ends[2] - ends[1], computing, link, count * gpu.submit_time, count)


def what_binds(model: str, gpu: str, tokens: int, host_us: int, launches: int) -> tuple[str, Picture]:
    """Words and bars: a step whose host takes ``host_us`` microseconds a launch."""
    spec = dataclasses.replace(GPU_SPECS[gpu], submit_time=host_us * 1e-6)
    times = step_times(PUBLISHED[model], spec, tokens=tokens, launches=launches)
    words = (
        f"{times.launches:,} launches of {host_us} microseconds. {times.binds[0].upper()}{times.binds[1:]} binds: "
        f"a step takes {format_time(times.step)}."
    )
    bars = [
        ValueBar("the host submits", times.host, "at work"),
        ValueBar("the link copies", times.link, "at work"),
        ValueBar("the GPU computes", times.computing, "at work"),
        ValueBar("a step", times.step, "step"),
    ]
    return words, value_bars(bars, title=f"{model.upper()} on {spec.name}, tokens a step: {tokens:,}")


def with_cards(model: str, gpu: str, tokens: int, most: int = 8) -> dict[int, StepTimes]:
    """The steps with 1 to ``most`` cards."""
    return {
        cards: step_times(PUBLISHED[model], GPU_SPECS[gpu], tokens=tokens, cards=cards) for cards in range(1, most + 1)
    }


def links_picture(model: str, gpu: str, tokens: int, cards: int) -> tuple[str, Picture]:
    """Words and bars: what 1 to ``cards`` cards gain over one."""
    found = with_cards(model, gpu, tokens, cards)
    layers, times = PUBLISHED[model].num_hidden_layers, found[cards]
    most = -(-layers // cards)
    words = (
        f"{cards} {'card' if cards == 1 else 'cards'}: {found[1].step / times.step:.2f} times as fast as one. The "
        f"busiest link brings {most} of {layers} layers, so links alone could gain {layers / most:.2f}; "
        f"{times.binds} binds."
    )
    bars = [
        ValueBar(f"{number} {'card' if number == 1 else 'cards'}", found[1].step / one.step, one.binds)
        for number, one in found.items()
    ]
    title = f"{model.upper()} on {GPU_SPECS[gpu].name}, tokens a step: {tokens:,}. Times as fast as one card"
    return words, value_bars(bars, title=title, show=lambda gain: f"{gain:.2f}")
