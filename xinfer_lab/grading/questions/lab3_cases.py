"""The cases of Lab 3: small models to stream, steps to place, layers to hide."""

from __future__ import annotations

from dataclasses import asdict
from random import Random
from typing import Any

from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout

__all__ = ["gate_streams", "hiding_cases", "pass_cases", "place_cases", "streams"]


def streams(random: Random) -> list[Case]:
    """Small models to stream through pools of 2, 3, 4 and 5 slots, which divide the number of layers or, more often, do
    not."""
    odd = (5, 7)
    shapes = ((random.choice((4, 6)), 2), (random.choice(odd), 3), (random.choice(odd), 2), (6, 4), (7, 5))
    return [_stream(random, layers, pool, random.randint(3, 4) if layers < 7 else 3) for layers, pool in shapes]


def gate_streams(random: Random) -> list[Case]:
    """The same, and 28 layers over four passes through a pool that does not divide them: where an engine failed."""
    return [*streams(random), _stream(random, 28, random.choice((3, 5)), 4)]


def _stream(random: Random, layers: int, pool: int, steps: int) -> Case:
    case = ModelCase.draw(random, layers=layers, pool=pool, steps=steps)
    return Case(case.label, case.inputs())


def place_cases(random: Random) -> list[Case]:
    """A running step, the number of layers, the pool: within the first pass, at its end, and many passes on."""
    cases = []
    for layers, pool in ((28, 3), (6, 2), (7, 2), (28, 5), (random.randint(10, 90), random.randint(2, 9))):
        steps = (
            0,
            layers - 1,
            layers,
            layers + random.randint(1, layers - 1),
            layers * random.randint(3, 40) + random.randrange(layers),
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
    for speed, memory in (("slower than", slow / 2), ("as fast as", slow)):
        figures = {"link_bandwidth": slow, "memory_bandwidth": memory, "link_latency": 0.0, "launch_time": 0.0}
        own = _made_up(random, "a GPU", **figures)
        cases.append(_case(f"a layer on a GPU whose own memory is {speed} the link", 2**28, 2**28, own))
    power = random.randint(5, 9)
    even = {"link_latency": 0.0, "launch_time": 0.0, "memory_bandwidth": 2.0**42}
    tie = _made_up(random, "a GPU of powers of two", link_bandwidth=2.0**34, flops=2.0 ** (34 + power), **even)
    cases.append(_case("a layer whose two times meet exactly", 2**28, 2**28, tie))
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
    ]
    return [
        Case(
            f"{layers} layers, T_trans = {trans} µs, T_comp = {comp} µs",
            {"layers": layers, "t_trans": trans, "t_comp": comp},
        )
        for layers, trans, comp in shapes
    ]
