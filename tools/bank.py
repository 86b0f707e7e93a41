"""The whole bank, many times: is every wrong answer refused for its reason, and every correct one taken?

Each answer is recorded and verified as in a notebook, with cases drawn anew in every repeat. Prints a table and ends
with status 1 if any verdict is not the one that the answer's header asks for. Stopped early, by Ctrl-C or at a given
time, it prints the table of what was graded until then.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.answer_bank import Answer, answers, checks_of, concerned, run

COLUMNS = ("correct", "wrong", "cheat", "graded", "accepted wrong", "rejected correct", "wrong message")
SHOWN = 20
"""Complaints that are printed; the table counts all."""
LOOK = 0.5
"""Seconds between two looks at whether to stop."""


@lru_cache(maxsize=64)
def drawn(check: str, seed: int) -> str:
    """The cases of ``check`` as JSON text: all answers to it are asked the same in one repeat."""
    from xinfer_lab.grading import cases_to_data, find_piece

    return json.dumps(cases_to_data(find_piece(check).draw(seed)))


def judge(answer: Answer, seed: int) -> tuple[Counter[str], list[str]]:
    """Which other verdicts ``answer`` got than its header asks for, and what was said."""
    from xinfer_lab.grading import cases_from_data
    from xinfer_lab.grading.check import examine_on

    faults: Counter[str] = Counter()
    said: list[str] = []
    told = []
    with redirect_stdout(io.StringIO()):
        names = run(answer)
        for check in concerned(answer.lab, answer.function):
            cases = cases_from_data(json.loads(drawn(check, seed)))
            report = examine_on(cases, check, names[checks_of(answer.lab)[check]])
            wanted = check not in answer.checks
            if report.passed != wanted:
                faults["rejected correct" if wanted else "accepted wrong"] += 1
                said.append(f"{answer.name}, {check}, seed {seed}: {report}")
            elif not wanted:
                told.append(" ".join(str(report).split()))
    phrase = " ".join(answer.phrase.split())
    if told and not any(phrase in text for text in told):
        faults["wrong message"] += 1
        said.append(f"{answer.name}, seed {seed}: no message contains {answer.phrase!r}: {told[0]}")
    return faults, said


@dataclass
class Ledger:
    """What the bank came to so far: a row a function, with the counts of `COLUMNS`."""

    rows: dict[str, Counter[str]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    graded: Counter[str] = field(default_factory=Counter)

    def enter(self, answer: Answer, faults: Counter[str], said: list[str]) -> None:
        """One answer was graded once."""
        row = self.rows.setdefault(row_of(answer), Counter())
        row[answer.kind] += answer.name not in self.graded
        self.graded[answer.name] += 1
        row["graded"] += 1
        row.update(faults)
        self.complaints += said

    def table(self) -> Iterator[str]:
        """The lines of the table. Cheats are counted where their function has a row."""
        for answer in answers("cheat"):
            if row_of(answer) in self.rows:
                self.rows[row_of(answer)]["cheat"] += 1
        rows = {**dict(sorted(self.rows.items())), "all": sum(self.rows.values(), Counter())}
        width = max(map(len, rows))
        yield f"{'piece':<{width}}  " + "  ".join(COLUMNS)
        for name, row in rows.items():
            yield f"{name:<{width}}  " + "  ".join(f"{row[column]:>{len(column)}}" for column in COLUMNS)
        least, most = min(self.graded.values(), default=0), max(self.graded.values(), default=0)
        times = f"{least} times" if least == most else f"{least} or {most} times"
        yield f"{len(self.graded)} answers, {times} each (cheats: counted here, run by `make test`)"


def rules_table(only: str) -> Iterator[str]:
    """The ledger of rules: for each, the drawn cases in which it alone decides, and the answers that break it alone."""
    from xinfer_lab.grading import find_piece, pieces_of
    from xinfer_lab.grading.ledger import deciding_cases, rules_of
    from xinfer_lab.grading.rooms import LABS

    banked: dict[str, list[str]] = {}
    for answer in answers("wrong"):
        banked.setdefault(answer.rule, []).append(answer.path.stem)
    yield f"{'rule':<44}{'cases':>6}{'answers':>9}"
    for piece in (piece.name for lab in LABS for piece in pieces_of(lab) if piece.name.startswith(only)):
        rules = rules_of(piece)
        cases = find_piece(piece).draw(0) if rules else []
        for rule in rules:
            deciding = deciding_cases(piece, rule, cases)
            count = f"{len(deciding)}/{len(cases)}" if deciding is not None else f"-/{len(cases)}"
            named = banked.get(f"{piece}.{rule}", [])
            yield f"{f'{piece}.{rule}':<44}{count:>6}{len(named):>9}  {', '.join(named)}"


def row_of(answer: Answer) -> str:
    """The name of an answer's row."""
    return f"{answer.lab} {answer.function}"


def grade(chosen: list[Answer], repeats: int, jobs: int, stopped: Callable[[], bool]) -> Ledger:
    """Grade every answer once, then again, ``repeats`` times, or until ``stopped()``; what is under way is finished."""
    ledger = Ledger()
    began = time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_worker) as pool:
        for seed in range(repeats):
            waiting = {pool.submit(judge, answer, seed): answer for answer in chosen}
            while waiting and not stopped():
                done, _ = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
                for future in done:
                    ledger.enter(waiting.pop(future), *future.result())
            if waiting:
                # All at once, before waiting for any: meanwhile a process would take up the next.
                under_way = [future for future in waiting if not future.cancel()]
                for future in under_way:
                    ledger.enter(waiting[future], *future.result())
                break
            taken = f"{time.monotonic() - began:.0f} s"
            complaints = f"{len(ledger.complaints)} complaints"
            print(f"{seed + 1} of {repeats} repeats, {taken}, {complaints}", file=sys.stderr, flush=True)
    return ledger


def _worker() -> None:
    """Being stopped is for the parent, which then has the table to print; one thread, since jobs are processes."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)


def _clock(text: str) -> float:
    """When it is next ``text``, as in 23:15, in seconds since the epoch."""
    hour, minute = map(int, text.split(":"))
    now = datetime.now()
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (then if then > now else then + timedelta(days=1)).timestamp()


def main() -> int:
    """Run the bank and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="how often each answer is graded (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--only", default="", help="a beginning of the answers' names, such as lab3/ensure/wrong")
    parser.add_argument("--rules", action="store_true", help="print the ledger of rules and grade nothing")
    parser.add_argument("--until", type=_clock, help="stop at this time of day, as in 23:15, and print the table")
    asked = parser.parse_args()
    if asked.rules:
        print(*rules_table(asked.only.replace("/", ".")), sep="\n")
        return 0
    # Cheats that leave their process, or never end, are for the processes of their own in tests/bank_tests.py.
    chosen = [a for kind in ("correct", "wrong") for a in answers(kind) if a.name.startswith(asked.only)]
    asked_to_stop: list[int] = []
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda number, frame: asked_to_stop.append(number))
    ledger = grade(
        chosen, asked.repeats, asked.jobs, lambda: bool(asked_to_stop) or time.time() >= (asked.until or float("inf"))
    )
    print(*ledger.table(), sep="\n")
    print("\n\n".join(ledger.complaints[:SHOWN]))
    return 1 if ledger.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
