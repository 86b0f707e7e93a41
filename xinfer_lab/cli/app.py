"""The command line itself: its commands, their order in the help, and how their errors end."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from xinfer_lab.cli import class_commands as classes
from xinfer_lab.cli import engine_commands as engine
from xinfer_lab.cli import expert_commands as experts
from xinfer_lab.cli import machine_commands as machine
from xinfer_lab.cli import model_commands as models
from xinfer_lab.cli import size_commands as sizes
from xinfer_lab.cli.faults import fault_sentence

__all__ = ["Command", "Commands", "app", "main"]


def _without_type(params: list[Any]) -> list[Any]:
    """``params``; those that take no value (--help too) show no type in the help."""
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
    """The commands. Bad input ends in one sentence on standard error and exit status 2."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return _without_type(super().get_params(ctx))

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, then exit with the command's status. An error that is not bad input keeps its traceback: it is a bug."""
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
    epilog="Start with `xinfer-lab demo`. Exit status: 0 all is well, 1 a check failed, 2 bad input.",
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run a Qwen2 model that is larger than GPU memory by streaming its decoder layers through a few slots."""


# In the order in which the help lists them.
COMMANDS: dict[str, Callable[..., int]] = {
    "demo": models.demo,
    "make-checkpoint": models.make_checkpoint,
    "parity": models.parity,
    "generate": models.generate,
    "experts": experts.experts,
    "trace": models.trace,
    "simulate": sizes.simulate,
    "plan": sizes.plan,
    "bench": machine.bench,
    "bench-pages": machine.bench_pages,
    "doctor": machine.doctor,
    "check": machine.check,
    "release": classes.release,
    "roster": classes.roster,
    "due": classes.due,
    "autograde": classes.autograde,
    "grade": classes.grade,
    "feedback": classes.feedback,
    "export": classes.export,
    "similar": classes.similar,
    "dispute": classes.dispute,
    "replay": classes.replay,
}
for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)
engines = typer.Typer(cls=Commands, no_args_is_help=True, help="Show the engine that you built in the labs.")
for command in (engine.show, engine.page):
    engines.command(cls=Command)(command)
app.add_typer(engines, name="engine")


def main() -> None:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show is no reason to stop.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="xinfer-lab")
