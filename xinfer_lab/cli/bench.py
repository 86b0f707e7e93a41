"""`xinfer-lab bench`: every residency on this GPU, beside what others use; or what the clock expects."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import torch
import typer

from xinfer_lab.bench.entries import OWN
from xinfer_lab.bench.links import run_links
from xinfer_lab.bench.measure import Workload, predict_model
from xinfer_lab.bench.pages import PARTS, PageSettings, run_pages
from xinfer_lab.bench.rows import Report, Row
from xinfer_lab.bench.run import Settings
from xinfer_lab.bench.suite import run_suite, workloads
from xinfer_lab.bench.tables import COLUMNS, charts, markdown, row_cells
from xinfer_lab.bench.targets import table, verdicts
from xinfer_lab.cli.devices import DeviceChoice, check_cards, gpu_spec
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.runs import describe_model
from xinfer_lab.cli.screen import print_table
from xinfer_lab.cli.simulate import find_config
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.peers import equal_cards
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.codec.format import CODECS
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import (
    SourceFactory,
    planned_layers,
    resident_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.plan import Plan, Shape, make_plan
from xinfer_lab.views.scale import format_time

__all__ = ["bench", "bench_pages", "parse_cards", "parse_codecs", "parse_counts", "parse_parts"]


_EXAMPLES = {"tokens": "8192,16384", "slots": "2,3"}


def parse_counts(text: str, what: str = "a prefill", unit: str = "tokens") -> tuple[int, ...]:
    """Counts written as ``8192,16384``, each 2 or more; empty for ''. Raises `CommandError`, which says ``what`` has
    how many of which ``unit``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal() or int(part) < 2:
            raise CommandError(f"{what} has 2 {unit} or more; write them as {_EXAMPLES[unit]}, not {part!r}")
    return tuple(int(part) for part in parts)


def parse_codecs(text: str) -> tuple[str, ...]:
    """Codecs written as ``4bit,3bit``; empty for ''. Raises `CommandError`."""
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if unknown := [part for part in parts if part not in CODECS]:
        raise CommandError(f"there is no codec {unknown[0]!r}; write some of {', '.join(CODECS)}, as 4bit,3bit")
    return parts


def bench(
    model: str,
    *,
    layers: int | None,
    settings: Settings,
    out: Path,
    simulate: bool,
    gpu: str,
    cards: Sequence[int] = (),
    engine: Path | None = None,
) -> int:
    """Measure (or with ``simulate``, predict for ``gpu``) and print; a measured report goes to ``out`` as JSON,
    Markdown and charts. With several ``cards``, measure what their links do together instead. ``engine``: the folder
    of a student's own, which has rows too. 1 if the bytes of one of our rows are not those of the resident run, or the
    student's engine could not run."""
    config = find_config(model)
    own = Engine(engine) if engine is not None else None
    if own is not None and len(cards) > 1:
        raise CommandError("your engine has slots on one card: leave out --engine, or name one card with --device")
    if layers is not None:
        if layers < 3:
            raise CommandError(f"with fewer than 3 layers nothing streams: --layers {layers}")
        config = dataclasses.replace(config, num_hidden_layers=layers)
    status = (
        _simulate(config, settings, gpu_spec(gpu), own) if simulate else _measure(config, settings, out, cards, own)
    )
    if own is not None:
        typer.echo(own.told())
    return status


def _measure(config: Qwen2Config, settings: Settings, out: Path, cards: Sequence[int], own: Engine | None) -> int:
    device = _gpu("; add --simulate to see what the virtual clock expects of one", out)
    if cards:
        device, *_ = equal_cards(cards)
        torch.cuda.set_device(device)
    if len(cards) > 1:
        check_cards(len(cards), config.num_hidden_layers)
        typer.echo(f"{describe_model(config)}, on {len(cards)} cards; this takes minutes", err=True)
        return _tell(run_links(config, settings, cards, _say, lambda so_far: _write_json(so_far, out)), out)
    typer.echo(f"{describe_model(config)}, on {torch.cuda.get_device_name()}; this takes minutes", err=True)
    streaming = own.streaming if own is not None else None
    report = run_suite(config, settings, device, _say, lambda so_far: _write_json(so_far, out), streaming)
    status = _tell(report, out)
    return 1 if any(row.name.startswith(OWN) and row.timing is None for row in report.rows) else status


def parse_cards(text: str) -> tuple[int, ...]:
    """The numbers of the cards that ``--device`` names. Raises `CommandError` for anything else."""
    choice = DeviceChoice(kind=text)
    if not text.startswith("cuda"):
        raise CommandError(f"bench measures CUDA cards: write --device cuda:0,cuda:1, not {text}")
    return choice.numbers


def bench_pages(settings: PageSettings, out: Path) -> int:
    """Measure pages and print; otherwise as `bench`."""
    device = _gpu("", out)
    typer.echo(f"pages of {format_bytes(settings.page_bytes)}, on {torch.cuda.get_device_name()}", err=True)
    return _tell(run_pages(settings, device, _say, lambda so_far: _write_json(so_far, out)), out)


def parse_parts(text: str) -> tuple[str, ...]:
    """Parts of a benchmark of pages, written as ``copies,experts``. Raises `CommandError`."""
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise CommandError(f"write some of the parts {', '.join(PARTS)}")
    if unknown := [part for part in parts if part not in PARTS]:
        raise CommandError(f"there is no part {unknown[0]!r}; write some of {', '.join(PARTS)}")
    return parts


def _gpu(otherwise: str, out: Path) -> torch.device:
    """The GPU to measure; ``out`` is made. Raises `CommandError` where there is none."""
    if not torch.cuda.is_available():
        raise CommandError(f"bench measures a GPU, and torch finds no CUDA device here{otherwise}")
    out.mkdir(parents=True, exist_ok=True)
    return torch.device("cuda", torch.cuda.current_device())


def _tell(report: Report, out: Path) -> int:
    """Print and write a finished report; the command's status."""
    _write_json(report, out)
    _write(report, out)
    spare = ("planned", "most", "least", "bound", "predicted", "peak")
    print_table(COLUMNS, [row_cells(row) for row in report.rows], left=2, spare=spare)
    for row in report.rows:
        if row.note and row.timing is not None:
            typer.echo(f"{row.name}, {row.workload}: {row.note}")
    for name, value in report.ratios.items():
        typer.echo(f"{value:8.3f}  {name}")
    for target, wanted, reached, met, *_ in table(verdicts(report)):
        typer.echo(f"{met}: {target}: {reached or 'no such row'} (wanted {wanted})")
    typer.echo(f"{out}: report.json, report.md and the charts")
    for row in report.rows:
        if row.failed:
            typer.echo(f"FAILED: {row.name}, {row.workload}: its bytes are not those of the resident run")
        elif row.broken:
            typer.echo(f"NOT MEASURED: {row.name}, {row.workload}: {row.note}")
    return 1 if report.failed else 0


def _say(row: Row) -> None:
    took = format_time(row.timing.median) if row.timing is not None else f"not run: {row.note}"
    typer.echo(f"{row.name}, {row.workload}: {took}", err=True)


def _write_json(report: Report, out: Path) -> None:
    """Write the report so far: a run that is stopped leaves a whole file."""
    new = out / "report.json.new"
    new.write_text(json.dumps(report.to_dict(), indent=1), encoding="utf-8")
    new.replace(out / "report.json")


def _write(report: Report, out: Path) -> None:
    (out / "report.md").write_text(markdown(report), encoding="utf-8")
    for stem, picture in charts(report).items():
        picture.save(out / f"{stem}.svg")


def _simulate(config: Qwen2Config, settings: Settings, spec: GpuSpec, own: Engine | None) -> int:
    typer.echo(f"{describe_model(config)}; the virtual clock's figures for {spec.name}, nothing is measured")
    rows = []
    for workload in workloads(settings):
        rows += [
            [
                name,
                workload.name,
                format_bytes(moved),
                format_time(predict_model(config, factory, workload, spec, host_embedding=host)),
            ]
            for name, factory, moved, host in _residencies(config, settings, workload, own)
        ]
    print_table(["", "pass", "moved a pass", "expected"], rows, left=2)
    return 0


def _residencies(
    config: Qwen2Config, settings: Settings, workload: Workload, own: Engine | None
) -> Sequence[tuple[str, SourceFactory, int, bool]]:
    shape = Shape(workload.context, chunk=workload.chunk)
    everything = make_plan(config, shape, None)
    moved = config.num_hidden_layers * everything.layer_bytes
    found = [("resident", resident_layers(), 0, False), ("serial, pinned", serial_layers(), moved, False)]
    for pool in settings.pools:
        if pool < config.num_hidden_layers:
            found.append((f"streaming, {pool} slots", streaming_layers(pool), moved, False))
            if own is not None:
                found.append((f"{OWN}, {pool} slots", own.streaming(pool), moved, False))
    if settings.budget is None:
        return found
    for codec in ("none", *settings.codecs):
        with contextlib.suppress(RequestError):
            plan: Plan = make_plan(config, shape, settings.budget, compress=codec)
            kind = "planned" if plan.compress == "none" else f"compressed {codec}"
            name = f"{kind}, {format_bytes(settings.budget)}"
            if not any(name == known for known, *_ in found):
                found.append((name, planned_layers(plan), plan.moved, plan.host_embedding))
    return found
