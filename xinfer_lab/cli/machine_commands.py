"""Commands on the machine: bench, check, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from xinfer_lab.cli.options import (
    EngineFolder,
    Page,
    Size,
    Vram,
    memory_of,
)

__all__ = ["bench", "bench_pages", "check", "doctor"]


def bench(
    model: Size = "7b",
    layers: Annotated[int | None, typer.Option(metavar="L", help="Layers, instead of all of the model's.")] = None,
    prefill: Annotated[
        str, typer.Option(metavar="T,T", help="Tokens of each prefill to measure; '' for none.")
    ] = "8192,16384",
    decode: Annotated[int, typer.Option(min=1, metavar="K", help="Decode steps to measure.")] = 5,
    vram: Vram = None,
    slots: Annotated[
        str,
        typer.Option(metavar="N,N", help="Slots of each pool to stream through; others are compared with 2."),
    ] = "2,3",
    codecs: Annotated[str, typer.Option(metavar="C,C", help="Codecs to measure; '' for none.")] = "4bit,3bit",
    peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Also measure what others use.")] = True,
    pageable: Annotated[
        bool,
        typer.Option("--pageable/--no-pageable", help="Also measure offloading from ordinary memory, which is slow."),
    ] = True,
    file_layers: Annotated[
        int, typer.Option(min=0, metavar="L", help="Layers of a checkpoint to write and run from; 0 for none.")
    ] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write report and charts.")] = Path("bench"),
    simulate: Annotated[bool, typer.Option("--simulate", help="Ask the virtual clock; measure nothing.")] = False,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="With --simulate: rtx4090, h200 or laptop.")] = "h200",
    engine: EngineFolder = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="CARD,CARD",
            help="Cards, as cuda:0,cuda:1: measure what their links do together. --vram is then one card's budget, of "
            "which several have a share each.",
        ),
    ] = "cuda",
) -> int:
    """Measure this machine's GPU: every residency, beside what others use, on made-up weights of a published shape.

    Measures the link, the rates and all rows in one run. Compares every row with the resident run, byte for byte, and
    with what the virtual clock predicts. Exit status 1: a row's bytes differ.
    """
    memory = memory_of(vram)
    from xinfer_lab.bench.run import Settings
    from xinfer_lab.cli import bench as command
    from xinfer_lab.cli.bench import parse_codecs, parse_counts

    chosen: dict[str, Any] = {} if peers else {"peers": ()}
    settings = Settings(
        decode=decode, prefills=parse_counts(prefill), budget=memory, pageable=pageable, file_layers=file_layers,
        pools=parse_counts(slots, "a pool", "slots"), codecs=parse_codecs(codecs), directory=out, **chosen,
    )  # fmt: skip
    return command.bench(
        model, layers=layers, settings=settings, out=out, simulate=simulate, gpu=gpu,
        cards=command.parse_cards(device), engine=engine,
    )  # fmt: skip


def bench_pages(
    parts: Annotated[
        str, typer.Option(metavar="P,P", help="What to measure: some of copies, experts, cache, offload.")
    ] = "copies,experts,cache,offload",
    page: Page = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write report and charts.")] = Path("bench-pages"),
) -> int:
    """Measure this machine's GPU: pages over the link, experts and a cache in pages, a model of 2.6 times the budget.

    Uses made-up weights of published shapes, and compares every row with the resident run, byte for byte. Exit status
    1: a row's bytes differ.
    """
    from xinfer_lab.bench.pages import PageSettings
    from xinfer_lab.cli import bench as command
    from xinfer_lab.cli.paging import page_bytes_of

    settings = PageSettings(parts=command.parse_parts(parts), page_bytes=page_bytes_of(page))
    return command.bench_pages(settings, out)


def doctor() -> int:
    """Say what this machine has, what is missing, and what to do."""
    from xinfer_lab.cli import doctor as command

    return command.doctor()


def check(
    notebook: Annotated[list[Path], typer.Argument(metavar="NOTEBOOK...", help="Notebooks of the labs, as saved.")],
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write what each check says as JSON.")
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, metavar="S", help="Seconds that one cell may take.")] = 300,
) -> int:
    """Run saved notebooks from the top, and report what each check says.

    For students, and for a service that runs when they push (deploy/students has an example). This runs the notebook's
    code, with your rights. The result is not a mark: marking asks other cases. Exit status 1: a check has not passed.
    """
    from xinfer_lab.cli import check as command

    return command.check(notebook, json_out=json_out, timeout=timeout)
