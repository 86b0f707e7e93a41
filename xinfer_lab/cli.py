"""The command line `xinfer-lab`: options and help. What a command does is imported from `xinfer_lab.commands`."""

from __future__ import annotations

import importlib.metadata
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from xinfer_lab.commands.faults import fault_sentence
from xinfer_lab.commands.sizes import parse_size

__all__ = ["app", "main"]


def _without_type(params: list[Any]) -> list[Any]:
    """``params``, of which those that take no value (--help too) show no type in the help."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


class Command(TyperCommand):
    """One command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its arguments and options."""
        return _without_type(super().get_params(ctx))


class Commands(TyperGroup):
    """The commands, and what becomes of their errors: bad input is one sentence on standard error and exit status 2."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return _without_type(super().get_params(ctx))

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, then leave with the command's status. An error that is nobody's bad input keeps its traceback."""
        try:
            status = super().main(*args, **{**options, "standalone_mode": False})
        except typer.Abort:
            status = 130
        except Exception as error:
            if (sentence := fault_sentence(error)) is None:
                raise
            if sentence:
                typer.echo(f"xinfer-lab: {sentence}", err=True)
            status = 2
        sys.exit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run a Qwen2 model that is larger than GPU memory by streaming its decoder layers through a few slots.",
    epilog="Start with `xinfer-lab demo`. Exit status: 0 as it should be, 1 a check failed, 2 bad input.",
)


def _version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"xinfer-lab {importlib.metadata.version('xinfer-lab')}")
        except importlib.metadata.PackageNotFoundError:
            typer.echo("xinfer-lab, run from its folder without being installed")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and exit.")
    ] = False,
) -> None:
    """Run a Qwen2 model that is larger than GPU memory by streaming its decoder layers through a few slots."""


class HostMemory(StrEnum):
    """Where streamed layers wait in host memory."""

    AUTO = "auto"
    PINNED = "pinned"
    REGISTERED = "registered"
    STAGED = "staged"


class Dtype(StrEnum):
    """Weight types."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Checkpoint: a directory with config.json and safetensors, or one .safetensors file."
    ),
]
StreamLayers = Annotated[
    int, typer.Option(metavar="N", help="Slots that the layers stream through: 2 or more; 1 is taken for 2.")
]
Steps = Annotated[int, typer.Option(min=1, metavar="T", help="Forward passes: the prompt, then one token each.")]
Prompt = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Text to start from; needs the model's tokenizer.json.")
]
Tokens = Annotated[str | None, typer.Option(metavar="1,2,3", help="Token ids to start from, instead of text.")]
Context = Annotated[
    int | None,
    typer.Option(min=1, metavar="TOKENS", help="Tokens that the cache has room for, by default as many as it takes."),
]
OnDevice = Annotated[
    str,
    typer.Option(
        "--device", metavar="KIND", help="auto, emulated, cuda or cuda:INDEX; auto is CUDA where there is one."
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Order of the emulated device: timed, copies_first, copies_last or random(SEED)."
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="GPU whose figures the virtual clock has: rtx4090, h200 or laptop (which is the default)."
    ),
]
Vram = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Device memory budget, such as 8GiB or 500MB; none by default.")
]
Host = Annotated[
    HostMemory,
    typer.Option(
        help="pinned: a pinned copy of the layers; registered: the checkpoint's files, pinned as they are; staged: a "
        "small ring that each layer passes through; auto: the best of them that is possible here, and it says which."
    ),
]


def _memory(vram: str | None) -> int | None:
    return None if vram is None else parse_size(vram)


def _one_of(prompt: str | None, tokens: str | None) -> None:
    if prompt is not None and tokens is not None:
        from xinfer_lab.commands.faults import CommandError

        raise CommandError("--prompt and --tokens exclude each other; give one of them")


@app.command(cls=Command)
def demo(
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Leave the checkpoint in this directory.")] = None,
) -> int:
    """Stream a small made-up model through two slots, and compare it with the resident run."""
    from xinfer_lab.commands import demo as command

    return command.demo(keep)


@app.command("make-checkpoint", cls=Command)
def make_checkpoint(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it; made if it is not there.")],
    layers: Annotated[int, typer.Option(help="Decoder layers.")] = 6,
    hidden: Annotated[int, typer.Option(help="Hidden size.")] = 64,
    heads: Annotated[
        int, typer.Option(help="Attention heads; they divide the hidden size, unless --head-dim is given.")
    ] = 4,
    kv_heads: Annotated[int, typer.Option(help="Key and value heads; they divide the attention heads.")] = 2,
    head_dim: Annotated[
        int | None, typer.Option(metavar="D", help="Width of a head; hidden / heads if left out.")
    ] = None,
    intermediate: Annotated[int, typer.Option(help="Intermediate size of the MLP.")] = 160,
    vocab: Annotated[int, typer.Option(help="Tokens; from 256 on there is a byte tokenizer.")] = 256,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes, everywhere.")] = 0,
    dtype: Annotated[Dtype, typer.Option(help="Type of the weights.")] = Dtype.FLOAT32,
    shards: Annotated[int, typer.Option(help="Weight files.")] = 1,
    tied: Annotated[bool, typer.Option("--tied", help="The head shares the embedding's weights.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace model files of any origin in DIR.")] = False,
) -> int:
    """Write a small made-up Qwen2 checkpoint in the Hugging Face layout."""
    from xinfer_lab.commands import make_checkpoint as command
    from xinfer_lab.qwen2.synthetic import SyntheticSpec

    spec = SyntheticSpec(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, intermediate=intermediate,
        vocab=vocab, seed=seed, dtype=dtype.value, shards=shards, tied=tied,
    )  # fmt: skip
    return command.make_checkpoint(directory, spec, force=force)


@app.command(cls=Command)
def parity(
    model: Model,
    stream_layers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Slots that the layers stream through: 2 at least; left out, 2 or what --vram allows."
        ),
    ] = None,
    steps: Steps = 4,
    device: OnDevice = "auto",
    schedule: Schedule = None,
    gpu: Gpu = None,
    prompt: Prompt = None,
    tokens: Tokens = None,
    context: Context = None,
    host_memory: Host = HostMemory.PINNED,
    vram: Vram = None,
    serial: Annotated[bool, typer.Option("--serial", help="Run one slot without overlap too.")] = False,
) -> int:
    """Check that streaming gives the same bytes as everything resident, and that no fence is missing.

    The last line says the largest difference. Exit status 0: all bytes are equal and nothing was found. Exit status 1:
    the first differing step and layer are named, and every hazard is reported in full. `--vram` is the budget of the
    streaming run, whose layers stay as far as they fit unless `--stream-layers` says otherwise; the resident run has
    none.
    """
    _one_of(prompt, tokens)
    memory = _memory(vram)
    from xinfer_lab.commands import parity as command
    from xinfer_lab.commands.devices import DeviceChoice

    return command.parity(
        model, DeviceChoice(kind=device, schedule=schedule, gpu=gpu), pool=stream_layers, steps=steps, prompt=prompt,
        tokens=tokens, context=context, host_memory=host_memory.value, serial=serial, memory=memory,
    )  # fmt: skip


@app.command(cls=Command)
def generate(
    model: Model,
    prompt: Prompt = None,
    tokens: Tokens = None,
    stream_layers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Slots that the layers stream through; without it all layers stay, or what --vram allows."
        ),
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, metavar="K", help="Tokens to generate, at most.")] = 32,
    temperature: Annotated[float, typer.Option(help="0 takes the most likely token; above, tokens are drawn.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the K most likely tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the fewest tokens of this probability together.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws: the same seed gives the same tokens.")] = 0,
    device: OnDevice = "auto",
    context: Context = None,
    host_memory: Host = HostMemory.AUTO,
    vram: Vram = None,
) -> int:
    """Continue a text or a list of tokens; each token is shown as it comes.

    With `--tokens` the answer is token ids, with `--prompt` it is text.
    """
    _one_of(prompt, tokens)
    memory = _memory(vram)
    from xinfer_lab.commands import generate as command
    from xinfer_lab.commands.devices import DeviceChoice

    sampling = command.Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    return command.generate(
        model, DeviceChoice(kind=device), sampling, pool=stream_layers, max_new_tokens=max_new_tokens, prompt=prompt,
        tokens=tokens, context=context, memory=memory, host_memory=host_memory.value,
    )  # fmt: skip


@app.command(cls=Command)
def trace(
    model: Model,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the trace.")],
    stream_layers: StreamLayers = 2,
    steps: Steps = 4,
    device: OnDevice = "auto",
    gpu: Gpu = None,
    prompt: Prompt = None,
    tokens: Tokens = None,
    vram: Vram = None,
) -> int:
    """Write when every copy, kernel and wait of a streaming run happened, for the Perfetto viewer.

    Measured on CUDA, by the virtual clock elsewhere. Loading is left out.
    """
    _one_of(prompt, tokens)
    memory = _memory(vram)
    from xinfer_lab.commands import trace as command
    from xinfer_lab.commands.devices import DeviceChoice

    return command.trace(
        model, DeviceChoice(kind=device, gpu=gpu), out, pool=stream_layers, steps=steps, prompt=prompt, tokens=tokens,
        memory=memory,
    )  # fmt: skip


@app.command(cls=Command)
def simulate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="0.5b, 1.5b, 7b, 14b, 32b, 72b, or a directory with config.json.")
    ],
    gpu: Annotated[str, typer.Option(metavar="NAME", help="rtx4090, h200 or laptop.")] = "rtx4090",
    stream_layers: StreamLayers = 2,
    tokens: Annotated[int, typer.Option(min=1, metavar="T", help="Tokens of the prompt.")] = 512,
    steps: Steps = 4,
    vram: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Device memory budget; the GPU's own memory if left out.")
    ] = None,
) -> int:
    """Say where the time of a model on some GPU would go, from sizes alone: nothing is loaded or computed."""
    memory = _memory(vram)
    from xinfer_lab.commands import simulate as command

    return command.simulate(model, gpu=gpu, pool=stream_layers, tokens=tokens, steps=steps, memory=memory)


class Codec(StrEnum):
    """How layers are kept and moved."""

    NONE = "none"
    FOUR = "4bit"
    THREE = "3bit"


Size = Annotated[
    str, typer.Argument(metavar="MODEL", help="0.5b, 1.5b, 7b, 14b, 32b, 72b, or a directory with config.json.")
]


@app.command(cls=Command)
def plan(
    model: Size,
    vram: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Device memory budget; the GPU's own memory if left out.")
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="rtx4090, h200 or laptop.")] = "rtx4090",
    context: Annotated[int, typer.Option(min=2, metavar="TOKENS", help="Tokens that the cache has room for.")] = 4096,
    batch: Annotated[int, typer.Option(min=1, help="Sequences at a time.")] = 1,
    chunk: Annotated[
        int | None, typer.Option(min=1, metavar="TOKENS", help="Tokens of one pass at most; all of them if left out.")
    ] = 512,
    compress: Annotated[Codec, typer.Option(help="Keep and move layers in a lossless coded form.")] = Codec.NONE,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw what holds the memory.")] = None,
) -> int:
    """Say what stays in device memory and what streams, within a budget, and how long a pass takes.

    Worked out from sizes alone, on the virtual clock; nothing is loaded or computed.
    """
    memory = _memory(vram)
    from xinfer_lab.commands import plan as command

    return command.plan(
        model, memory=memory, gpu=gpu, context=context, batch=batch, chunk=chunk, compress=compress.value,
        picture=picture,
    )  # fmt: skip


@app.command(cls=Command)
def bench(
    model: Size = "7b",
    layers: Annotated[int | None, typer.Option(metavar="L", help="Layers, instead of all of the model's.")] = None,
    prefill: Annotated[
        str, typer.Option(metavar="T,T", help="Tokens of each prefill to measure; '' for none.")
    ] = "8192,16384",
    decode: Annotated[int, typer.Option(min=1, metavar="K", help="Decode steps to measure.")] = 5,
    vram: Vram = None,
    peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Measure what others do too.")] = True,
    pageable: Annotated[
        bool,
        typer.Option("--pageable/--no-pageable", help="Measure offloading from ordinary memory too, which is slow."),
    ] = True,
    file_layers: Annotated[
        int, typer.Option(min=0, metavar="L", help="Layers of a checkpoint to write and to run from; 0 for none.")
    ] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where report and charts go.")] = Path("bench"),
    simulate: Annotated[bool, typer.Option("--simulate", help="Ask the virtual clock; nothing is measured.")] = False,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="With --simulate: rtx4090, h200 or laptop.")] = "h200",
) -> int:
    """Measure this machine's GPU: every residency, beside what others do, on made-up weights of a published shape.

    The link, the rates and all rows are measured in one run; every row is compared with the resident run, byte for
    byte, and with what the virtual clock expects of the card. Exit status 1: a row's bytes differ.
    """
    memory = _memory(vram)
    from xinfer_lab.bench.suite import Settings
    from xinfer_lab.commands import bench as command
    from xinfer_lab.commands.bench import parse_counts

    chosen: dict[str, Any] = {} if peers else {"peers": ()}
    settings = Settings(
        decode=decode, prefills=parse_counts(prefill), budget=memory, pageable=pageable, file_layers=file_layers,
        directory=out / "checkpoint", **chosen,
    )  # fmt: skip
    return command.bench(model, layers=layers, settings=settings, out=out, simulate=simulate, gpu=gpu)


@app.command(cls=Command)
def doctor() -> int:
    """Say what this machine has, what is missing and what to do."""
    from xinfer_lab.commands import doctor as command

    return command.doctor()


def main() -> None:
    """Run the command line and leave with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal lacks is no reason to stop.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="xinfer-lab")
