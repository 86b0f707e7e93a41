"""The process that runs a student's cells and records the answers. It knows nothing that is right.

It reads one line of standard input that says what to do, and writes one line of JSON for each thing that begins and
ends.
Cases come when they are asked, without their labels, and go to a fork that asks them and ends: what an answer sees of
them, no later cell of the notebook can print. (Linux alone has a fork that is safe here; elsewhere they are asked in
this process.)

Whatever the student's code does to this process, its parent holds what came before, and believes nothing of it without
verifying.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, Any, overload

from xinfer_lab.course.confine import confine, end_with_parent
from xinfer_lab.grading.denial import Denied, DeniedModule
from xinfer_lab.grading.rooms import allowed_in

__all__ = ["main"]


class Channel:
    """Lines to the parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, **event: Any) -> None:
        """Write one event."""
        line = json.dumps(event).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]


def main() -> int:
    """Carry out the request on standard input."""
    channel = Channel(os.dup(1))
    requests = os.fdopen(os.dup(0), "rb")
    request = json.loads(requests.readline())
    confine(**request["confine"])
    end_with_parent()
    denied = tuple(request["denied"])
    sys.meta_path.insert(0, Denied(denied))
    pieces = {name: _piece(name, request["cpu_seconds"]) for name in request["pieces"]}
    allowed = allowed_in(next(iter(pieces), ""))
    if allowed is not None:
        builtins.__import__ = allowed
    _silence_checks()
    cells = _Cells(denied, request["cell_cpu"])
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _tell_of_kills(channel)
    channel.say(ready=True)
    for number, step in enumerate(request["steps"]):
        channel.say(begin=number)
        if "source" in step:
            channel.say(ran=number, **cells.run(step["source"]))
            continue
        answer, trouble = cells.evaluate(step["expression"])
        if trouble is not None:
            channel.say(lacks=number, **trouble)
            continue
        channel.say(asks=number)
        ended = _in_a_fork(partial(_ask, pieces[step["piece"]], answer, number, requests, channel))
        if ended:
            channel.say(ended=number, words=ended)
    channel.say(done=True)
    # What a student's code left running must not hold the parent up.
    os._exit(0)


def _tell_of_kills(channel: Channel) -> None:
    """Say so before this process sends a signal: its own SIGKILL looks like that of a machine without memory."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("os.kill", "os.killpg", "signal.pthread_kill"):
            channel.say(kills=True)

    sys.addaudithook(hook)


def _ask(piece: Any, answer: object, number: int, requests: IO[bytes], channel: Channel) -> None:
    cases = _Counted(json.loads(requests.readline()), lambda: channel.say(begin=number))
    channel.say(recorded=number, data=piece.record(answer, cases))


def _in_a_fork(act: Callable[[], None]) -> str:
    """Run ``act``; how its process ended, or '' where it came to its end."""
    if sys.platform != "linux":
        act()
        return ""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with_parent(parent)
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGKILL:
        # Perhaps the machine's memory was full: that the parent of this process finds out, as of any other one.
        signal.raise_signal(signal.SIGKILL)
    how = f"with status {status}" if status > 0 else f"by signal {-status}"
    return f"the process ended {how}" if status else ""


def _piece(name: str, cpu_seconds: float | None) -> Any:
    from xinfer_lab.grading.catalog import find_piece

    piece: Any = find_piece(name)
    return piece if cpu_seconds is None else dataclasses.replace(piece, cpu_seconds=cpu_seconds)


def _silence_checks() -> None:
    """In a student's own cells a check says nothing here: there is nothing right to compare with."""
    import xinfer_lab.grading as grading

    def check(*arguments: object, **options: object) -> None:
        return None

    grading.check = check
    setattr(importlib.import_module("xinfer_lab.grading.check"), "check", check)  # noqa: B010


class _Counted(Sequence[Any]):
    """Cases that tell when each is taken up, so that the parent's limit is one for each case."""

    def __init__(self, data: list[Any], on_next: Any) -> None:
        from xinfer_lab.grading.piece import cases_from_data

        self._cases, self._on_next = cases_from_data(data), on_next

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._cases[index]

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Any]:
        for case in self._cases:
            self._on_next()
            yield case


class _Cells:
    """A student's cells, run as IPython runs them: with magics, with source lines for tracebacks, each on its own."""

    def __init__(self, denied: tuple[str, ...], cpu: float) -> None:
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "NoColor"
        config.InteractiveShell.xmode = "Plain"
        self._shell = _shell().instance(config=config)
        self._passed_over: dict[str, str] = {}
        self._cpu = cpu
        setattr(builtins, "_xinfer_lab_import", _PassOver(self._passed_over))  # noqa: B010
        self._shell.ast_transformers.append(_imports_apart())

    def run(self, source: str) -> dict[str, Any]:
        """Run a cell: what it printed, and what stopped it, if anything did."""
        from xinfer_lab.course.printed import printed
        from xinfer_lab.grading.guard import AnswerTimeout, time_limit

        error: BaseException | None = None
        with printed() as page:
            try:
                with time_limit(self._cpu):
                    result = self._shell.run_cell(source, store_history=False)
                    error = result.error_before_exec or result.error_in_exec
            except BaseException as raised:
                error = raised
        if isinstance(error, KeyboardInterrupt):
            error = AnswerTimeout(f"the cell had not ended after {self._cpu:g} s")
        return {"printed": page.text, "error": None if error is None else _told(error)}

    def evaluate(self, expression: str) -> tuple[object, dict[str, Any] | None]:
        """The answer that a check names, or what keeps it from being there."""
        try:
            return eval(compile(expression, "<check>", "eval"), self._shell.user_ns), None
        except BaseException as error:
            name = error.name if isinstance(error, NameError) else None
            return None, {"error": _told(error), "name": name, "denied": self._passed_over.get(name or "")}


def _shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell

    class Shell(InteractiveShell):
        """IPython without a terminal and without windows: ``%matplotlib`` and its like do nothing."""

        def enable_gui(self, gui: object = None) -> None:
            """Nothing to enable."""

        def enable_matplotlib(self, gui: object = None) -> tuple[None, str]:
            """Pictures are not looked at."""
            return None, "agg"

    return Shell


class _PassOver:
    """``with self(names): import ...`` goes on after an import that is refused, and remembers what is missing for
    it.
    """

    def __init__(self, passed_over: dict[str, str]) -> None:
        self._passed_over = passed_over
        self._names: tuple[str, ...] = ()

    def __call__(self, *names: str) -> _PassOver:
        self._names = names
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, DeniedModule):
            self._passed_over.update(dict.fromkeys(self._names, str(error)))
            return True
        return False


def _imports_apart() -> Any:
    import ast

    class Apart(ast.NodeTransformer):
        """Wraps each import at the top of a cell, so that a refused one does not take the rest of the cell with it."""

        def visit_Module(self, module: ast.Module) -> ast.Module:
            module.body = [self._wrapped(statement) for statement in module.body]
            return module

        def _wrapped(self, statement: ast.stmt) -> ast.stmt:
            if (
                not isinstance(statement, ast.Import | ast.ImportFrom)
                or getattr(statement, "module", "") == "__future__"
            ):
                return statement
            names = [(alias.asname or alias.name.split(".")[0]) for alias in statement.names]
            call = ast.Call(ast.Name("_xinfer_lab_import", ast.Load()), [ast.Constant(name) for name in names], [])
            apart = ast.With([ast.withitem(call)], [statement])
            return ast.fix_missing_locations(ast.copy_location(apart, statement))

    return Apart()


def _told(error: BaseException) -> Mapping[str, Any]:
    try:
        message = str(error)[:1000]
    except Exception:
        message = ""
    line, trace = getattr(error, "lineno", None), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<ipython-input"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return {"type": type(error).__name__[:100], "message": message, "line": line if type(line) is int else None}


if __name__ == "__main__":
    # By its own name: "__main__" is what a notebook's code is called, and may import less.
    sys.exit(importlib.import_module("xinfer_lab.course.recorder_process").main())
