"""Commands on a checkpoint: demo, make-checkpoint, parity, generate, trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.cli.options import (
    Cards,
    Context,
    Dtype,
    EngineFolder,
    EvictBy,
    Gpu,
    Host,
    HostMemory,
    Model,
    OnDevice,
    Page,
    Paged,
    PagedCache,
    PagedExperts,
    Prompt,
    Schedule,
    Steps,
    Tokens,
    Vram,
    memory_of,
    one_of,
)

__all__ = ["demo", "generate", "make_checkpoint", "parity", "trace"]


def demo(
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the checkpoint in this directory.")] = None,
) -> int:
    """Stream a small made-up model through two slots and compare it with the resident run."""
    from xinfer_lab.cli import demo as command

    return command.demo(keep)


def make_checkpoint(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it; created if missing.")],
    layers: Annotated[int, typer.Option(help="Decoder layers.")] = 6,
    hidden: Annotated[int, typer.Option(help="Hidden size.")] = 64,
    heads: Annotated[
        int, typer.Option(help="Attention heads; they divide the hidden size, unless --head-dim is given.")
    ] = 4,
    kv_heads: Annotated[int, typer.Option(help="Key and value heads; they divide the attention heads.")] = 2,
    head_dim: Annotated[
        int | None, typer.Option(metavar="D", help="Width of a head; by default hidden / heads.")
    ] = None,
    intermediate: Annotated[int, typer.Option(help="Intermediate size of the MLP.")] = 160,
    vocab: Annotated[int, typer.Option(help="Tokens; from 256 on there is a byte tokenizer.")] = 256,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes, everywhere.")] = 0,
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.FLOAT32,
    shards: Annotated[int, typer.Option(help="Weight files.")] = 1,
    tied: Annotated[bool, typer.Option("--tied", help="The head shares the embedding's weights.")] = False,
    experts: Annotated[int, typer.Option(metavar="E", help="Experts in each layer; 0 for a dense MLP.")] = 0,
    experts_per_token: Annotated[int, typer.Option(metavar="K", help="Experts for each token.")] = 2,
    force: Annotated[bool, typer.Option("--force", help="Replace model files in DIR, whatever wrote them.")] = False,
) -> int:
    """Write a small made-up Qwen2 checkpoint in the Hugging Face layout; with `--experts` a Qwen2-MoE one."""
    from xinfer_lab.cli import make_checkpoint as command
    from xinfer_lab.qwen2.synthetic import SyntheticSpec

    spec = SyntheticSpec(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, intermediate=intermediate,
        vocab=vocab, seed=seed, dtype=dtype.value, shards=shards, tied=tied, experts=experts,
        experts_per_token=experts_per_token,
    )  # fmt: skip
    return command.make_checkpoint(directory, spec, force=force)


def parity(
    model: Model,
    stream_layers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Slots to stream through, at least 2; by default 2, or what --vram allows."),
    ] = None,
    steps: Steps = 4,
    device: OnDevice = "auto",
    devices: Cards = 1,
    schedule: Schedule = None,
    gpu: Gpu = None,
    prompt: Prompt = None,
    tokens: Tokens = None,
    context: Context = None,
    host_memory: Host = HostMemory.PINNED,
    vram: Vram = None,
    serial: Annotated[bool, typer.Option("--serial", help="Also run one slot, without overlap.")] = False,
    paged: Paged = None,
    paged_cache: PagedCache = None,
    page: Page = None,
    policy: EvictBy = None,
    engine: EngineFolder = None,
) -> int:
    """Check that streaming gives the same bytes as everything resident, and that no fence is missing.

    The last line gives the largest difference. Exit status 0: all bytes are equal and no fault was found. Exit status
    1: the output names the first step and layer that differ, and reports every hazard in full. `--vram` is the budget
    of the streaming run, which keeps as many layers as fit unless `--stream-layers` is given; the resident run has no
    budget. `--paged` keeps the layers in a page pool instead, `--paged-cache` the KV cache.
    """
    one_of(prompt, tokens)
    memory = memory_of(vram)
    from xinfer_lab.cli import parity as command
    from xinfer_lab.cli.devices import DeviceChoice
    from xinfer_lab.cli.paging import paging_of

    pages = paging_of(paged, paged_cache, page, policy, pool=stream_layers)
    return command.parity(
        model, DeviceChoice(kind=device, schedule=schedule, gpu=gpu, cards=devices), pool=stream_layers, steps=steps,
        prompt=prompt, tokens=tokens, context=context, host_memory=host_memory.value, serial=serial, memory=memory,
        paging=pages, engine=engine,
    )  # fmt: skip


def generate(
    model: Model,
    prompt: Prompt = None,
    tokens: Tokens = None,
    stream_layers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Slots to stream through; by default all layers stay, or as many as --vram allows."
        ),
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, metavar="K", help="Generate at most this many tokens.")] = 32,
    temperature: Annotated[float, typer.Option(help="0 takes the most likely token; above 0, tokens are drawn.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the K most likely tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the fewest tokens that together have this probability.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="Seed of the draws; the same seed gives the same tokens.")
    ] = 0,
    chat: Annotated[
        bool, typer.Option("--chat", help="The prompt is a message; put it into the model's chat template.")
    ] = False,
    device: OnDevice = "auto",
    devices: Cards = 1,
    context: Context = None,
    host_memory: Host = HostMemory.AUTO,
    vram: Vram = None,
    paged: Paged = None,
    paged_cache: PagedCache = None,
    paged_experts: PagedExperts = None,
    page: Page = None,
    policy: EvictBy = None,
    engine: EngineFolder = None,
) -> int:
    """Continue a text or a list of tokens; show each token as it comes.

    With `--tokens` the answer is token ids, with `--prompt` it is text. A text becomes the tokens that transformers
    makes of it: with the begin token that the model's tokenizer adds, unless the text begins with it.
    """
    one_of(prompt, tokens)
    memory = memory_of(vram)
    from xinfer_lab.cli import generate as command
    from xinfer_lab.cli.devices import DeviceChoice
    from xinfer_lab.cli.paging import paging_of

    pages = paging_of(paged, paged_cache, page, policy, pool=stream_layers, experts=paged_experts)
    sampling = command.Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    return command.generate(
        model, DeviceChoice(kind=device, cards=devices), sampling, pool=stream_layers, max_new_tokens=max_new_tokens,
        prompt=prompt, tokens=tokens, context=context, memory=memory, host_memory=host_memory.value, paging=pages,
        engine=engine, chat=chat,
    )  # fmt: skip


def trace(
    model: Model,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the trace.")],
    stream_layers: Annotated[
        int | None, typer.Option(metavar="N", help="Slots to stream through, at least 2; by default 2.")
    ] = None,
    steps: Steps = 4,
    device: OnDevice = "auto",
    devices: Cards = 1,
    gpu: Gpu = None,
    prompt: Prompt = None,
    tokens: Tokens = None,
    vram: Vram = None,
    paged: Paged = None,
    paged_cache: PagedCache = None,
    paged_experts: PagedExperts = None,
    page: Page = None,
    policy: EvictBy = None,
    engine: EngineFolder = None,
) -> int:
    """Write the timeline of a streaming run for the Perfetto viewer: every copy, kernel and wait.

    Times are measured on CUDA, and from the virtual clock elsewhere. Loading is left out. `--paged` keeps the layers in
    a page pool instead, `--paged-cache` the KV cache. With `--paged-experts` the layers of a Qwen2-MoE stay, and its
    experts come when they are chosen.
    """
    one_of(prompt, tokens)
    memory = memory_of(vram)
    from xinfer_lab.cli import trace as command
    from xinfer_lab.cli.devices import DeviceChoice
    from xinfer_lab.cli.paging import paging_of

    pages = paging_of(paged, paged_cache, page, policy, pool=stream_layers, experts=paged_experts)
    return command.trace(
        model, DeviceChoice(kind=device, gpu=gpu, cards=devices), out, pool=stream_layers, steps=steps, prompt=prompt,
        tokens=tokens, memory=memory, paging=pages, engine=engine,
    )  # fmt: skip
