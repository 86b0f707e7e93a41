"""`xinfer-lab experts`: a model's experts in pages, on demand and guessed ahead, compared with resident ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from xinfer_lab.cli.devices import DeviceChoice
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.parity import compare, tokens_of
from xinfer_lab.cli.runs import Finished, RunSpec, describe_model, moved_bytes, run_on
from xinfer_lab.cli.screen import print_table
from xinfer_lab.cli.sizes import parse_size
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.experts import ExpertsFactory, resident_experts
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.mixture import Mixture
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_experts import ExpertStatistics, PagedExperts, paged_experts
from xinfer_lab.residency.weights import CheckpointWeights
from xinfer_lab.views.scale import format_time

__all__ = ["experts"]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A run, with how its experts were found and how good its guesses were."""

    finished: Finished
    mixture: Mixture

    @property
    def found(self) -> ExpertStatistics | None:
        """How chosen experts were found; None where all are resident."""
        source = self.mixture.experts
        return source.statistics() if isinstance(source, PagedExperts) else None


def experts(
    model: Path,
    choice: DeviceChoice,
    *,
    size: str,
    page: str | None,
    policy: str,
    steps: int,
    prompt: str | None,
    tokens: str | None,
) -> int:
    """Compare, print the table and a parity line for each. 0 if all bytes are equal and nothing was found, else 1."""
    room, page_bytes = parse_size(size), PAGE_BYTES if page is None else parse_size(page)
    if page_bytes % 256:
        raise CommandError(f"--page is a multiple of 256 bytes, such as 2MiB, not {page}")
    with Checkpoint.open(model) as checkpoint:
        if checkpoint.config.experts is None:
            raise CommandError(f"{model} has no experts; for a dense model there is parity --paged")
        plan = RunSpec(checkpoint=checkpoint, tokens=tokens_of(checkpoint, prompt, tokens), passes=steps)
        made: dict[str, ExpertsFactory] = {
            "resident": resident_experts,
            "on demand": paged_experts(room, policy, page_bytes),
            "guessed": paged_experts(room, policy, page_bytes, guess=True),
        }
        rows = {name: _run(name, choice, plan, factory) for name, factory in made.items()}
        typer.echo(f"{describe_model(checkpoint.config)}; {steps} passes, the first of {len(plan.tokens)} tokens")
    clock = "as measured with the checks on" if choice.measured else "on the virtual clock"
    typer.echo(f"experts in a pool of {format_bytes(room)}, {policy}; times of the passes {clock}")
    _print(rows)
    reports = [report for row in rows.values() for report in row.finished.reports]
    for report in reports:
        typer.echo(f"{report}\n")
    verdicts = [compare(rows["resident"].finished, rows[name].finished, name) for name in ("on demand", "guessed")]
    for verdict in verdicts:
        typer.echo(f"{verdict.note}\n{verdict.line}" if verdict.note else verdict.line)
    return 0 if not reports and all(verdict.equal for verdict in verdicts) else 1


def _run(name: str, choice: DeviceChoice, plan: RunSpec, made: ExpertsFactory) -> _Row:
    mixtures: list[Mixture] = []

    def load(device: Device) -> QwenModel:
        model = QwenModel(
            CheckpointWeights(plan.checkpoint), device, resident_layers(), context=plan.room, chunk=len(plan.tokens),
            make_experts=made,
        )  # fmt: skip
        assert model.mixture is not None
        mixtures.append(model.mixture)
        return model

    finished = run_on(name, choice.open(measure=True), load, plan)
    return _Row(finished=finished, mixture=mixtures[0])


def _print(rows: dict[str, _Row]) -> None:
    columns = ["", "peak device\nmemory", "moved to\ndevice", "there", "ahead", "missing", "good\nguesses", "stalled",
               "time"]  # fmt: skip
    table = []
    for name, row in rows.items():
        run, passes, found, guesses = row.finished.run, row.finished.passes, row.found, row.mixture.guesses
        table.append([
            name,
            format_bytes(run.memory.peak),
            format_bytes(moved_bytes(row.finished.stream, run.first_record)),
            *("" if found is None else str(count) for count in _counts(found or ExpertStatistics())),
            f"{guesses.right / guesses.guessed:.0%}" if guesses.guessed else "",
            "" if passes is None else format_time(passes.busy("direct", "wait")),
            "" if passes is None else format_time(passes.duration),
        ])  # fmt: skip
    print_table(columns, table)
    typer.echo(
        "there, ahead, missing: how chosen experts were found; stalled: the direct queue waited for their copies"
    )
    for name, row in rows.items():
        if row.found is not None:
            typer.echo(f"{name}: hit rate {row.found.hit_rate:.0%}")


def _counts(found: ExpertStatistics) -> tuple[int, int, int]:
    return found.there, found.ahead, found.missing
