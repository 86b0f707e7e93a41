"""Draw the pictures of Lab 6: plans, the waterfall, streamed layers spread or not, exponents, budgets, what binds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from xinfer_lab.device.gpu_spec import GPU_SPECS, KERNEL_COPY, GpuSpec
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.labs.lab6.given.steps import ONE_BY_ONE, RECORDED, StepTimes, links_picture, step_times
from xinfer_lab.qwen2 import PUBLISHED
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.factories import (
    SourceFactory,
    planned_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.lab_gpu import lab_gpu
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.plan import Plan, Shape, make_plan
from xinfer_lab.residency.planned import spread
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.compare import compare_timelines
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.residency_bars import ResidencyBar, residency_bars
from xinfer_lab.views.slots import SlotOf, slots_of
from xinfer_lab.views.value_bars import ValueBar, value_bars

__all__ = ["host_steps", "lab6_pictures", "pass_seconds", "waterfall_seconds"]

GIB = 2**30
MODEL = PUBLISHED["32b"]
SHAPE = Shape(context=2048, chunk=1)
PAGEABLE = 10e9
"""Bytes a second of copies from ordinary memory: the rate at which the card's host copies."""


def pass_seconds(config: Qwen2Config, make: SourceFactory, gpu: GpuSpec) -> float:
    """Seconds of one decode step in the middle of a run, on the virtual clock."""
    ends = []
    with SimulatedDevice(gpu, memory=None, check=False) as device:
        model = QwenModel(SizedWeights(config), device, make, context=SHAPE.context, chunk=1)
        model.begin(4)
        for _ in range(3):
            model.forward(torch.zeros(1, 1, dtype=torch.int64))
            ends.append(device.now)
        model.close()
    return ends[2] - ends[1]


def waterfall_seconds() -> dict[str, float]:
    """A decode step of the 32B model on an RTX 4090, step by step from naive to best."""
    gpu, budget = GPU_SPECS["rtx4090"], 24 * GIB
    slow = replace(gpu, link_bandwidth=PAGEABLE)
    plain, coded = (make_plan(MODEL, SHAPE, budget, compress=form) for form in ("none", "3bit"))
    return {
        "serial, pageable": pass_seconds(MODEL, serial_layers(), slow),
        "serial, pinned": pass_seconds(MODEL, serial_layers(), gpu),
        "overlapped": pass_seconds(MODEL, streaming_layers(2), gpu),
        "planned": pass_seconds(MODEL, planned_layers(plain), gpu),
        "compressed": pass_seconds(MODEL, planned_layers(coded), gpu),
    }


def _waterfall() -> Picture:
    bars = [ValueBar(name, seconds, "decode step") for name, seconds in waterfall_seconds().items()]
    return value_bars(bars, title="One decode step of the 32B model on a 24 GiB RTX 4090, virtual clock")


def _bar(name: str, plan: Plan) -> ResidencyBar:
    slot = max((plan.encoded[layer] for layer in plan.streamed), default=0) if plan.encoded else plan.layer_bytes
    plain = plan.layer_bytes if plan.encoded else 0
    parts = {
        "layers that stay": plan.held - plan.slots * slot - plain,
        "slots": plan.slots * slot,
        "a plain layer to decode into": plain,
        "all else": sum(plan.always.values()),
    }
    return ResidencyBar(name, parts)


def _plans() -> Picture:
    whole = make_plan(MODEL, SHAPE, None)
    budget = 24 * GIB
    stream = Plan(whole.layers, tuple(range(whole.layers)), 2, whole.layer_bytes, whole.always, None)
    plain, coded = (make_plan(MODEL, SHAPE, budget, compress=form) for form in ("none", "3bit"))
    bars = [
        _bar("all resident", whole),
        _bar("2 slots, none stays", stream),
        _bar(f"{plain.resident} stay, plain", plain),
        _bar(f"{coded.resident} stay, coded", coded),
    ]
    return residency_bars(bars, title="Four plans for the 32B model", budgets={"a card of 24 GiB": budget})


def _crowded() -> Picture:
    config = SyntheticSpec(layers=8, hidden=64, heads=2, kv_heads=2, intermediate=192, vocab=64).config()
    gpu = replace(lab_gpu(config, 0.5), kernel_copy=KERNEL_COPY)

    def run(streamed: tuple[int, ...]) -> tuple[Timeline, SlotOf]:
        with SimulatedDevice(gpu, memory=None, check=False) as device:
            plan = Plan(8, streamed, 2, 0, {}, None)
            model = QwenModel(SizedWeights(config), device, planned_layers(plan), context=8, chunk=1)
            model.begin(4)
            for number in range(3):
                if number == 2:
                    start = device.now
                model.forward(torch.zeros(1, 1, dtype=torch.int64))
            end, slots = device.now, slots_of(device.stream)
            timeline = device.timeline()
            model.close()
        kept = [event for event in timeline.events if event.start < end and event.end > start and event.lane != "host"]
        moved = [replace(event, start=max(event.start - start, 0.0), end=min(event.end, end) - start) for event in kept]
        return replace(timeline, events=tuple(moved), flows=(), memory=()), slots

    (even, one), (row, two) = run(spread(8, 4)), run((0, 1, 2, 3))
    return compare_timelines(
        even, row, title="A pass in the middle of a run: four of eight layers stream",
        names=("spread", "in a row"), slot_of=(one, two),
    )  # fmt: skip


def exponent_shares() -> dict[int, float]:
    """Shares of the exponents of normally distributed weights, those above one in a thousand."""
    generator = torch.Generator().manual_seed(6)
    bits = (torch.randn(200_000, generator=generator) * 0.02).to(torch.bfloat16).view(torch.int16).to(torch.int32)
    counts = torch.bincount(bits >> 7 & 255, minlength=256).double() / bits.numel()
    return {exponent: float(share) for exponent, share in enumerate(counts) if share > 1e-3}


def _exponents() -> Picture:
    bars = [
        ValueBar(f"exponent {exponent}", share, "share of weights") for exponent, share in exponent_shares().items()
    ]
    return value_bars(
        bars, title="200,000 normally distributed weights, by exponent", show=lambda share: f"{100 * share:.1f} %"
    )


def _budgets() -> Picture:
    gpu, bars = GPU_SPECS["rtx4090"], []
    for gib in (12, 16, 24, 40, 48):
        for kind, form in (("plain", "none"), ("coded", "3bit")):
            plan = make_plan(MODEL, SHAPE, gib * GIB, compress=form)
            bars.append(ValueBar(f"{gib} GiB, {kind}", pass_seconds(MODEL, planned_layers(plan), gpu), kind))
    return value_bars(bars, title="A decode step of the 32B model by budget, over a link of 25 GB/s, virtual clock")


def host_steps() -> dict[str, StepTimes]:
    """A step of the 0.5B model on an H200 whose host takes 25 microseconds a launch: by itself, and recorded once."""
    gpu = replace(GPU_SPECS["h200"], submit_time=25e-6)
    ways = {"one for each operation": ONE_BY_ONE, "recorded once": RECORDED}
    return {name: step_times(PUBLISHED["0.5b"], gpu, launches=launches) for name, launches in ways.items()}


def _binds() -> Picture:
    bars = []
    for name, times in host_steps().items():
        bars += [
            ValueBar(f"{name}: host", times.host, name),
            ValueBar("link", times.link, name),
            ValueBar("computing", times.computing, name),
            ValueBar("a step", times.step, name),
        ]
    return value_bars(bars, title="0.5B streams on an H200, 25 microseconds of the host a launch")


def lab6_pictures() -> Iterator[tuple[str, Picture]]:
    """Each picture with its path within the project."""
    folder = "solutions/lab6-beat-the-link"
    yield f"{folder}/plans.svg", _plans()
    yield f"{folder}/waterfall.svg", _waterfall()
    yield f"{folder}/spread.svg", _crowded()
    yield f"{folder}/exponents.svg", _exponents()
    yield f"{folder}/explore.svg", _budgets()
    yield f"{folder}/binds.svg", _binds()
    yield f"{folder}/links.svg", links_picture("7b", "rtx4090", 1, 8)[1]
