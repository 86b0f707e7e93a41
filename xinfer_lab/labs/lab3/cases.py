"""The cases of Lab 3: small models to stream, steps to place, layers to hide."""

from __future__ import annotations

from dataclasses import asdict, replace
from random import Random
from typing import Any

from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout

__all__ = ["gate_streams", "hiding_cases", "pass_cases", "place_cases", "streams"]


def streams(random: Random) -> list[Case]:
    """Small models to stream through pools of 2, 3, 5 and 8 slots, which divide the number of layers or, more often, do
    not; one after more than 256 steps; the last is not the only model."""
    odd = (5, 7)
    shapes = ((random.choice((4, 6)), 2), (random.choice(odd), 3), (random.choice(odd), 2), (9, 8), (7, 5))
    drawn = [ModelCase.draw(random, layers=n, pool=pool, steps=3 if n > 6 else 4) for n, pool in shapes]
    drawn[2], drawn[4] = replace(drawn[2], begun=256 // drawn[2].layers + 1), replace(drawn[4], others=True)
    return [Case(case.label, case.inputs()) for case in drawn]


def gate_streams(random: Random) -> list[Case]:
    """The same, and 28 layers over four passes through a pool that does not divide them: where an engine failed."""
    many = ModelCase.draw(random, layers=28, pool=random.choice((3, 5)), steps=4)
    return [Case(many.label, many.inputs()), *streams(random)]


def place_cases(random: Random) -> list[Case]:
    """A running step, the number of layers, the pool: within the first pass, at its end, and many passes on."""
    cases = []
    for layers, pool in ((28, 3), (6, 2), (7, 2), (28, 5), (126, 8), (random.randint(10, 90), random.randint(2, 9))):
        steps = (
            0,
            layers - 1,
            layers,
            layers + random.randint(1, layers - 1),
            layers * random.randint(3, 40) + random.randrange(layers),
            random.randint(10_000, 20_000),
        )
        for step in steps:
            inputs = {"step": step, "layers": layers, "pool": pool}
            cases.append(Case(f"step {step} of {layers} layers, pool of {pool}", inputs))
    return cases


def _case(name: str, layer_bytes: int, flops: int, gpu: GpuSpec) -> Case:
    return Case(name, {"layer_bytes": layer_bytes, "flops_per_token": flops, "gpu": asdict(gpu)})


def _made_up(random: Random, name: str, **fixed: Any) -> GpuSpec:
    figures = {
        "memory_bytes": 2**33,
        "link_bandwidth": random.uniform(5, 60) * 1e9,
        "link_latency": random.uniform(5, 20) * 1e-6,
        "flops": random.uniform(20, 800) * 1e12,
        "memory_bandwidth": random.uniform(0.5, 5) * 1e12,
        "launch_time": random.uniform(4, 9) * 1e-6,
        "host_bandwidth": 1e10,
    }
    return GpuSpec(name, **{**figures, **fixed})


def hiding_cases(random: Random) -> list[Case]:
    """Layers on GPUs. Rounding in floating point never decides; in two cases the two times meet exactly."""
    cases: list[Case] = []
    for name, gpu in (("32b", GPU_SPECS["h200"]), (random.choice(("7b", "14b", "72b")), GPU_SPECS["rtx4090"])):
        nbytes = layer_layout(PUBLISHED[name]).weight_nbytes
        cases.append(_case(f"a layer of Qwen2.5-{name.upper()} in bfloat16 on a {gpu.name}", nbytes, nbytes, gpu))
    weights = random.randint(20, 400) * 10**6
    cases.append(_clear(random, "a layer in float32", 4 * weights, 2 * weights))
    small = random.randint(3, 9) * 10**5
    cases.append(_clear(random, "a small layer, where latency counts", 2 * small, 2 * small))
    tiny = _made_up(random, "a GPU that is slow to launch", launch_time=1e-4)
    cases.append(_case("a tiny layer on a GPU that is slow to launch", 4096, 4096, tiny))
    slow = 2.0 ** random.randint(35, 37)
    for compared, memory in (("slower than", slow / 2), ("as fast as", slow)):
        figures = {"link_bandwidth": slow, "memory_bandwidth": memory, "link_latency": 0.0, "launch_time": 0.0}
        own = _made_up(random, "a GPU", **figures)
        cases.append(_case(f"a layer on a GPU whose own memory is {compared} the link", 2**28, 2**28, own))
    power = random.randint(5, 9)
    even = {"link_latency": 0.0, "launch_time": 0.0, "memory_bandwidth": 2.0**42}
    tie = _made_up(random, "a GPU of powers of two", link_bandwidth=2.0**34, flops=2.0 ** (34 + power), **even)
    cases.append(_case("a layer whose two times meet exactly", 2**28, 2**28, tie))
    # As above, with other figures: everything is a small odd number times a power of two, so that no order of
    # computing rounds.
    tokens = random.choice((150, 375, 625, 750, 900))
    figures = {"link_bandwidth": 3 * 2.0**33, "flops": 5 * 2.0**44, "link_latency": 3 * 2.0**-18}
    odd = _made_up(random, "a GPU", launch_time=3 * 2.0**-18, memory_bandwidth=2.0**46, **figures)
    cases.append(_case("another layer whose two times meet exactly", 3 * 2**23 * tokens, 5 * 2**34, odd))
    speed, delay = random.uniform(20, 60) * 1e9, random.uniform(5, 9) * 1e-6
    same = {"link_bandwidth": speed, "memory_bandwidth": speed, "link_latency": delay, "launch_time": delay}
    own = _made_up(random, "a GPU", **same)
    cases.append(_case("a layer that is read as fast as it is copied", random.randint(10**8, 10**9), 2**28, own))
    return cases


def _clear(random: Random, name: str, nbytes: int, flops: int) -> Case:
    while True:
        gpu = _made_up(random, "a made-up GPU")
        tokens = (gpu.copy_time(nbytes) - gpu.launch_time) * gpu.flops / flops
        plain = nbytes / gpu.link_bandwidth * gpu.flops / flops
        if 0.05 < tokens % 1 < 0.95 and abs(tokens - plain) > 2:
            return _case(f"{name} on a made-up GPU", nbytes, flops, gpu)


def pass_cases(random: Random) -> list[Case]:
    """Layers and both times in microseconds, whole numbers: computing shorter, equal and longer; one layer; decode."""
    base = random.randint(200, 900)
    shapes = [
        (random.randint(5, 30), 2 * base, base),
        (random.randint(5, 30), base, base),
        (random.randint(5, 30), base, 2 * base + random.randint(1, 99)),
        (1, base, base + random.randint(1, 99)),
        (random.choice((28, 64, 80)), 40 * base, base + random.randint(1, 99)),
        (126, base * 10**15 + 1, base),
    ]
    return [
        Case(
            f"{layers} layers, T_trans = {trans} µs, T_comp = {comp} µs",
            {"layers": layers, "t_trans": trans, "t_comp": comp},
        )
        for layers, trans, comp in shapes
    ]
