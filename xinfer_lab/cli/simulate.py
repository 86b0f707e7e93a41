"""`xinfer-lab simulate`: a model's passes on a GPU you may not own, from sizes alone, and where the time goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
import typer

from xinfer_lab.cli.budget import explained
from xinfer_lab.cli.devices import check_cards, gpu_spec
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.layer_cost import layer_cost
from xinfer_lab.cli.make_checkpoint import weight_bytes
from xinfer_lab.cli.pass_times import PassTimes, mean_pass, pass_times
from xinfer_lab.cli.residency import pool_name
from xinfer_lab.cli.runs import describe_model, note_pool
from xinfer_lab.cli.screen import print_table, screen_width
from xinfer_lab.device.checker import Findings
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.qwen2.config import PUBLISHED, Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.factories import effective_pool, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.figures import excerpt
from xinfer_lab.views.scale import format_share, format_time
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_text import timeline_text

__all__ = ["find_config", "links_line", "simulate"]

SHOWN_LAYERS = 6

_GROUPS = {
    "resident": "embedding, final norm, head",
    "outside.embedding": "embedding",
    "outside.head": "final norm, head",
    "kv": "key and value cache",
    "slot": "layer slots",
    "layer": "layers",
    "tokens": "activations",
    "hidden": "activations",
    "logits": "activations",
}
"""What a table calls the holders of device memory, by the first part of their names."""


def find_config(model: str) -> Qwen2Config:
    """The config that ``model`` names: a published size or a directory with config.json. Raises `CommandError`."""
    size = model.lower().removeprefix("qwen2.5-").removeprefix("qwen2-")
    if size in PUBLISHED:
        return PUBLISHED[size]
    if not Path(model).exists():
        raise CommandError(
            f"{model}: no such directory, and no published size; choose {', '.join(PUBLISHED)} "
            f"or a directory with config.json"
        )
    return Qwen2Config.from_file(model)


def simulate(
    model: str, *, gpu: str, pool: int, tokens: int, steps: int, memory: int | None = None, gpus: int = 1
) -> int:
    """Simulate a pass of ``tokens`` and ``steps - 1`` of one token, and print the tables. 1 if a hazard was found.

    ``gpus``: how many cards, of ``memory`` bytes each; ``pool``: the slots on each.
    """
    config, spec = find_config(model), gpu_spec(gpu)
    layers = config.num_hidden_layers
    check_cards(gpus, layers)
    share = -(-layers // gpus)
    slots = effective_pool(pool, share)
    device = SimulatedDevice(spec, on_hazard="collect", nodes=gpus, **({} if memory is None else {"memory": memory}))
    context = tokens + steps - 1
    budget = device.memory.use().budget
    with explained(config, budget, context=context, chunk=tokens, pool=pool, cards=gpus), device:
        weights = SizedWeights(config)
        loaded = QwenModel(weights, device, streaming_layers(pool), context=context, chunk=tokens)
        first, ends = len(device.stream), []
        loaded.begin(steps)
        for step in range(steps):
            loaded.forward(torch.zeros(1, tokens if step == 0 else 1, dtype=torch.int64, device="cpu"))
            ends.append(len(device.stream))
        passes = device.timeline().since(first)
        uses = [card.use() for card in device.memories]
        loaded.close()
    streamed = 0 if slots is None else layers * layer_layout(config).nbytes
    times = pass_times(passes, device.stream, ends, spec.link_bandwidth)

    typer.echo(f"{describe_model(config)}: {format_bytes(weight_bytes(config))} of weights; {pool_name(pool, share)}")
    note_pool(pool)
    rates = f"link {spec.link_bandwidth / 1e9:g} GB/s, {spec.flops / 1e12:g} TFLOP/s"
    card = f"{format_bytes(uses[0].budget or spec.memory_bytes)}, {rates}"
    if gpus == 1:
        typer.echo(f"on a simulated {spec.name}: {card}")
    else:
        typer.echo(f"on {gpus} simulated {spec.name}, each {card}; layer i lives on card i mod {gpus}")
    _print_times(times, tokens)
    _print_verdict(config, spec, times, tokens, streamed)
    if gpus > 1:
        typer.echo(links_line(layers, gpus, relays=device.peers and slots is not None))
    _print_memory(uses[0].holders, uses[0].peak, "memory of card 0" if gpus > 1 else "device memory")
    if gpus > 1:
        fullest = max(range(1, gpus), key=lambda card: uses[card].peak)
        title = f"memory of card {fullest}" + (", the fullest of the others" if gpus > 2 else "")
        _print_memory(uses[fullest].holders, uses[fullest].peak, title)
    typer.echo(_picture(passes, device, times))
    findings = Findings(tuple(device.hazards), tuple(device.state_faults))
    if findings:
        typer.echo(f"\n{findings.report()}")
    return 1 if findings else 0


def _print_times(times: Sequence[PassTimes], tokens: int) -> None:
    named = [(f"prefill, {tokens} {'token' if tokens == 1 else 'tokens'}", times[0])]
    if len(times) > 1:
        named.append((f"decode, mean of {len(times) - 1}", mean_pass(times[1:])))
    rows = [
        [
            name, format_time(one.time), format_time(one.compute), format_time(one.upload), format_time(one.stalled),
            format_time(one.bound), f"{one.time / one.bound:.2f}" if one.bound else "",
        ]
        for name, one in named
    ]  # fmt: skip
    print_table(["pass", "time", "compute", "upload", "stalled", "bound", "time / bound"], rows)
    typer.echo("bound = max(compute, bytes moved / link): no schedule can be faster.")


def _print_verdict(config: Qwen2Config, spec: GpuSpec, times: Sequence[PassTimes], tokens: int, streamed: int) -> None:
    if not streamed:
        typer.echo("Everything is resident: nothing crosses the link but tokens and logits.")
        return
    layer = layer_layout(config).nbytes
    upload = spec.copy_time(layer)
    one, many = layer_cost(config, 1), layer_cost(config, tokens)
    enough = math.ceil(upload * spec.flops / one.flops)
    compute = spec.dispatch_time(many)
    typer.echo(
        f"A layer is {format_bytes(layer)}: {format_time(upload)} over the link, {format_time(compute)} to compute for "
        f"{tokens} {'token' if tokens == 1 else 'tokens'}.\nAbout {enough} tokens a pass would hide its upload."
    )
    for name, passes in (("Prefill", times[:1]), ("Decode", times[1:])):
        if passes:
            mean = mean_pass(passes)
            limit = "computing" if mean.compute >= mean.bound else "the link"
            stalled = format_share(mean.stalled, mean.time)
            typer.echo(f"{name} is bound by {limit}; the direct queue stands still for {stalled}.")


def links_line(layers: int, gpus: int, *, relays: bool) -> str:
    """What ``gpus`` links come to for layers that all stream. ``relays``: odd layers come over all links."""
    most, odd = -(-layers // gpus), layers % gpus
    gain = f"at most {layers / most:.3g} times one link's rate"
    if not odd:
        return f"{gpus} links: {gain}; each brings {most} of the {layers} layers."
    if relays:
        what = "the odd layer comes" if odd == 1 else f"the {odd} odd layers come"
        return (
            f"{gpus} links: at most {gpus} times one link's rate; of {layers} layers each brings {layers // gpus}, and "
            f"{what} in parts over all of them."
        )
    return f"{gpus} links: {gain}, since {layers} layers over {gpus} cards leave {most} to some of them."


def _print_memory(holders: dict[str, int], peak: int, title: str) -> None:
    groups: dict[str, int] = {}
    for holder, size in holders.items():
        groups[_group(holder)] = groups.get(_group(holder), 0) + size
    rows = [[name, format_bytes(size), format_share(size, peak)] for name, size in groups.items()]
    print_table([title, "bytes", "share"], [*rows, ["peak", format_bytes(peak), ""]])


def _group(holder: str) -> str:
    stem = holder.partition("[")[0].partition("@")[0]
    return _GROUPS.get(stem, holder)


def _picture(passes: Timeline, device: SimulatedDevice, times: Sequence[PassTimes]) -> str:
    """The first layers of the first pass."""
    computed = [event for event in passes.events if event.kind == "dispatch"][1 : SHOWN_LAYERS + 1]
    shown = excerpt(passes, 0.0, computed[-1].end)
    words = f"The first {len(computed)} layers of the first pass ({format_time(times[0].time)}):"
    return f"{words}\n{timeline_text(shown, screen_width(), slot_of=slots_of(device.stream))}"
