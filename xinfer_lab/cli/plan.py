"""`xinfer-lab plan`: what stays and what streams within a budget, and the time that follows from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from xinfer_lab.cli.devices import gpu_spec
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.runs import describe_model
from xinfer_lab.cli.screen import print_table
from xinfer_lab.cli.simulate import find_config
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.cache import cache_shape
from xinfer_lab.residency.plan import CACHE_PAGES, Plan, Shape, make_plan
from xinfer_lab.residency.plan_times import PlanTimes, predict
from xinfer_lab.residency.tiers import free_host_memory
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.residency_bars import ResidencyBar, residency_bars
from xinfer_lab.views.scale import format_share, format_time

__all__ = ["bar_of", "plan", "print_plan"]

CODECS = ("none", "4bit", "3bit")

_NAMES = {"resident": "embedding, final norm, head"}
_ON_HOST = {"resident": "final norm, head"}
_SMALL = ("tokens", "hidden", "logits")


def plan(
    model: str,
    *,
    memory: int | None,
    gpu: str,
    context: int,
    batch: int,
    chunk: int | None,
    compress: str,
    picture: Path | None,
    paging: Paging = NO_PAGING,
) -> int:
    """Print the plan for ``model`` (a size or a directory) and what follows from it; draw it to ``picture``.
    ``paging``: the cache, where it is in pages."""
    config, spec = find_config(model), gpu_spec(gpu)
    if picture is not None:
        with output_file(picture):
            pass
    tokens = context if chunk is None else min(chunk, context)
    shape = Shape(context, batch=batch, chunk=tokens, make_cache=paging.make_cache())
    budget = spec.memory_bytes if memory is None else memory
    found = make_plan(config, shape, budget, compress=compress)
    typer.echo(f"{describe_model(config)}; {format_bytes(budget)} of device memory on {spec.name}")
    print_plan(config, shape, found, spec)
    if picture is not None:
        _draw(config, shape, found, spec, budget).save(picture)
        typer.echo(f"{picture}: what holds the memory, as a picture")
    return 0


def print_plan(config: Qwen2Config, shape: Shape, found: Plan, spec: GpuSpec) -> None:
    """Where the bytes go, what streams from where, and the times with what binds them."""
    peak = found.peak
    rows = [[name, format_bytes(size), format_share(size, peak)] for name, size in bar_of("", found).parts.items()]
    print_table(["device memory", "bytes", "share"], [*rows, ["peak", format_bytes(peak), ""]])
    typer.echo(_what_streams(found))
    if found.host_embedding:
        size = config.vocab_size * config.hidden_size * config.dtype.itemsize
        typer.echo(
            f"The embedding stays in pinned host memory ({format_bytes(size)}), where a pass reads the rows of its "
            f"tokens: so more layers stay."
        )
    if found.streamed:
        typer.echo(_host_side(found))
    if shape.paged:
        typer.echo(_pages(config, shape, found))
    prefill, decode = predict(config, shape, found, spec)
    tokens = shape.chunk or shape.context
    step = f"decode, token {shape.context}" if shape.paged else "decode"
    times = [_times(f"prefill, {tokens} tokens", prefill), _times(step, decode)]
    print_table(["pass", "time", "everything\nresident", "over the\nlink", "bound", "time /\nbound", "bound by"], times)
    typer.echo("bound = max(everything resident, bytes moved / link): no schedule of these layers can be faster.")


def bar_of(name: str, found: Plan) -> ResidencyBar:
    """What holds device memory under a plan, by names for people."""
    parts: dict[str, int] = {}
    for holder, size in found.always.items():
        names = _ON_HOST if found.host_embedding else _NAMES
        part = "activations" if holder in _SMALL else names.get(holder, holder)
        parts[part] = parts.get(part, 0) + size
    if found.compress == "none":
        layers = found.resident * found.layer_bytes
        slots = found.slots * found.layer_bytes
    else:
        layers = sum(found.encoded) - found.moved
        slots = found.held - layers
    words = "layers that stay" if found.compress == "none" else "coded layers that stay"
    parts |= {words: layers, "slots": slots} if slots else {words: layers}
    return ResidencyBar(name, {part: size for part, size in parts.items() if size})


def _what_streams(found: Plan) -> str:
    if not found.streamed:
        kept = "in their coded form" if found.compress != "none" else "as they are"
        return f"All {found.layers} layers stay, {kept}: nothing streams."
    shown = ", ".join(str(layer) for layer in found.streamed[:12]) + (", ..." if len(found.streamed) > 12 else "")
    coded = f" as {found.compress} codes" if found.compress != "none" else ""
    return (
        f"{found.resident} of {found.layers} layers stay; {len(found.streamed)} stream{coded} through {found.slots} "
        f"slots ({shown}): {format_bytes(found.moved)} a pass."
    )


def _pages(config: Qwen2Config, shape: Shape, found: Plan) -> str:
    """How much of a paged cache is in device memory."""
    whole = config.num_hidden_layers * cache_shape(config, shape.batch, shape.context).layer_bytes
    held = found.always[CACHE_PAGES]
    if held >= whole:
        return f"The cache is in pages, all of which fit ({format_bytes(whole)}), beside one layer's in one piece."
    return (
        f"The cache is in pages: {format_bytes(held)} of {format_bytes(whole)} are in device memory, beside one "
        f"layer's in one piece. The rest waits in pinned host memory, and crosses the link in each pass that reads it."
    )


def _host_side(found: Plan) -> str:
    """Which host tier the streamed layers can wait in on this machine."""
    free = free_host_memory()
    if found.moved < free:
        return (
            f"They wait in host memory: registered straight out of the checkpoint's files where CUDA can do that, else "
            f"pinned ({format_bytes(found.moved)} of the {format_bytes(free)} that are free here)."
        )
    return (
        f"They do not fit into the {format_bytes(free)} of host memory that are free here: each would be staged "
        f"through a pinned ring, at the rate at which the host copies."
    )


def _times(name: str, times: PlanTimes) -> list[str]:
    ratio = f"{times.time / times.bound:.2f}" if times.bound else ""
    return [
        name, format_time(times.time), format_time(times.resident), format_time(times.link), format_time(times.bound),
        ratio, times.binding,
    ]  # fmt: skip


def _draw(config: Qwen2Config, shape: Shape, found: Plan, spec: GpuSpec, budget: int) -> Picture:
    everything = make_plan(config, shape, None)
    least = dataclasses.replace(
        everything, streamed=tuple(range(found.layers)), slots=2, budget=budget
    )  # fmt: skip
    bars = [bar_of("everything resident", everything), bar_of("this plan", found), bar_of("all layers stream", least)]
    title = f"{describe_model(config)} within {format_bytes(budget)}"
    return residency_bars(bars, title=title, budgets={"budget": budget})
