"""`xinfer-lab plan`: what stays and what streams within a budget, and the time that follows from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from xinfer_lab.cli.devices import check_cards, gpu_spec
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.runs import describe_model
from xinfer_lab.cli.screen import print_table
from xinfer_lab.cli.simulate import find_config
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.cache import cache_shape
from xinfer_lab.residency.plan import CACHE_PAGES, GroupPlan, Plan, Shape, make_plan, plan_cards
from xinfer_lab.residency.plan_times import PlanTimes, predict
from xinfer_lab.residency.tiers import free_host_memory
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.residency_bars import ResidencyBar, residency_bars
from xinfer_lab.views.scale import format_share, format_time

__all__ = ["bar_of", "plan", "print_plan"]

CODECS = ("none", "4bit", "3bit")

_NAMES = {
    "resident": "embedding, final norm, head",
    "outside.embedding": "embedding",
    "outside.head": "final norm, head",
}
_ON_HOST = {**_NAMES, "resident": "final norm, head"}
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
    gpus: int = 1,
) -> int:
    """Print the plan for ``model`` (a size or a directory) and what follows from it; draw it to ``picture``.
    ``paging``: the cache, where it is in pages; ``gpus``: how many cards, of ``memory`` bytes each."""
    config, spec = find_config(model), gpu_spec(gpu)
    check_cards(gpus, config.num_hidden_layers)
    if picture is not None:
        with output_file(picture):
            pass
    tokens = context if chunk is None else min(chunk, context)
    shape = Shape(context, batch=batch, chunk=tokens, make_cache=paging.make_cache())
    budget = spec.memory_bytes if memory is None else memory
    found = plan_cards(config, shape, budget, gpus, compress=compress)
    on = spec.name if gpus == 1 else f"each of {gpus} {spec.name}; layer i lives on card i mod {gpus}"
    typer.echo(f"{describe_model(config)}; {format_bytes(budget)} of device memory on {on}")
    print_plan(config, shape, found, spec)
    if picture is not None:
        _draw(config, shape, found, spec, budget).save(picture)
        typer.echo(f"{picture}: what holds the memory, as a picture")
    return 0


def print_plan(config: Qwen2Config, shape: Shape, found: GroupPlan, spec: GpuSpec) -> None:
    """Where the bytes go, what streams from where, and the times with what binds them."""
    if len(found.cards) == 1:
        _print_card(found.cards[0], "device memory")
        typer.echo(_what_streams(found.cards[0]))
    else:
        _print_card(found.cards[0], "memory of card 0")
        fullest = max(range(1, len(found.cards)), key=lambda card: found.cards[card].peak)
        others = ", the fullest of the others" if len(found.cards) > 2 else ""
        _print_card(found.cards[fullest], f"memory of card {fullest}{others}")
        _print_shares(found)
    if found.host_embedding:
        size = config.vocab_size * config.hidden_size * config.dtype.itemsize
        typer.echo(
            f"The embedding stays in pinned host memory ({format_bytes(size)}), where a pass reads the rows of its "
            f"tokens: so more layers stay."
        )
    if found.streamed:
        typer.echo(_host_side(sum(card.moved for card in found.cards)))
    if shape.paged:
        typer.echo(_pages(config, shape, found))
    prefill, decode = predict(config, shape, found, spec)
    tokens = shape.chunk or shape.context
    step = f"decode, token {shape.context}" if shape.paged else "decode"
    times = [_times(f"prefill, {tokens} tokens", prefill), _times(step, decode)]
    print_table(["pass", "time", "everything\nresident", "over the\nlink", "bound", "time /\nbound", "bound by"], times)
    typer.echo("bound = max(everything resident, bytes moved / link): no schedule of these layers can be faster.")


def _print_card(card: Plan, title: str) -> None:
    parts = bar_of("", card).parts.items()
    rows = [[name, format_bytes(size), format_share(size, card.peak)] for name, size in parts]
    print_table([title, "bytes", "share"], [*rows, ["peak", format_bytes(card.peak), ""]])


def _print_shares(found: GroupPlan) -> None:
    """What each card keeps and streams, and what so many links come to."""
    rows = [
        [str(number), str(card.layers), str(card.resident), str(len(card.streamed)), format_bytes(card.moved)]
        for number, card in enumerate(found.cards)
    ]
    print_table(["card", "layers", "stay", "stream", "moved a pass"], rows)
    cards = len(found.cards)
    if not found.streamed:
        typer.echo("All layers stay: nothing streams.")
        return
    together = sum(card.moved for card in found.cards)
    line = (
        f"{cards} links bring {format_bytes(together)} in the time of {format_bytes(found.moved)}: "
        f"{together / found.moved:.3g} times one link's rate"
    )
    most = -(-found.layers // cards)
    if found.layers % cards:
        line += f"; {found.layers} layers over {cards} cards leave {most} to some, which bind"
    typer.echo(f"{line}.")


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


def _pages(config: Qwen2Config, shape: Shape, found: GroupPlan) -> str:
    """How much of a paged cache is in device memory."""
    whole = config.num_hidden_layers * cache_shape(config, shape.batch, shape.context).layer_bytes
    held = sum(card.always[CACHE_PAGES] for card in found.cards)
    if held >= whole:
        return f"The cache is in pages, all of which fit ({format_bytes(whole)}), beside one layer's in one piece."
    return (
        f"The cache is in pages: {format_bytes(held)} of {format_bytes(whole)} are in device memory, beside one "
        f"layer's in one piece. The rest waits in pinned host memory, and crosses the link in each pass that reads it."
    )


def _host_side(moved: int) -> str:
    """Which host tier the streamed layers can wait in on this machine."""
    free = free_host_memory()
    if moved < free:
        return (
            f"They wait in host memory: registered straight out of the checkpoint's files where CUDA can do that, else "
            f"pinned ({format_bytes(moved)} of the {format_bytes(free)} that are free here)."
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


def _draw(config: Qwen2Config, shape: Shape, found: GroupPlan, spec: GpuSpec, budget: int) -> Picture:
    title = f"{describe_model(config)} within {format_bytes(budget)}"
    if len(found.cards) > 1:
        bars = [bar_of(f"card {number}", card) for number, card in enumerate(found.cards)]
        return residency_bars(bars, title=f"{title} a card", budgets={"budget": budget})
    everything = make_plan(config, shape, None)
    least = dataclasses.replace(everything, streamed=tuple(range(found.layers)), slots=2, budget=budget)
    plans = {"everything resident": everything, "this plan": found.cards[0], "all layers stream": least}
    bars = [bar_of(name, plan) for name, plan in plans.items()]
    return residency_bars(bars, title=title, budgets={"budget": budget})
