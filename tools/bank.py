"""The whole bank, many times: is every wrong answer refused for its reason, and every correct one taken?

Each answer is recorded and verified as in a notebook, with cases drawn anew in every repeat. Prints a table and ends
with status 1 if any verdict is not the one that the answer's header asks for.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.answer_bank import Answer, answers, checks_of, concerned, run

COLUMNS = ("correct", "wrong", "cheat", "accepted wrong", "rejected correct", "wrong message")


def judge(answer: Answer, seeds: range) -> tuple[Counter[str], list[str]]:
    """How often ``answer`` got another verdict than its header asks for, over ``seeds``, and what was said."""
    from xinfer_lab.grading import examine

    faults: Counter[str] = Counter()
    said: list[str] = []
    checks = checks_of(answer.lab)
    for seed in seeds:
        with redirect_stdout(io.StringIO()):
            names = run(answer)
        told = []
        for check in concerned(answer.lab, answer.function):
            report = examine(check, names[checks[check]], seed=seed)
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


def main() -> int:
    """Run the bank and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="how often each answer is graded (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--only", default="", help="a beginning of the answers' names, such as lab3/ensure/wrong")
    asked = parser.parse_args()
    # Cheats that leave their process, or never end, are for the processes of their own in tests/test_bank.py.
    chosen = [a for kind in ("correct", "wrong") for a in answers(kind) if a.name.startswith(asked.only)]
    table: dict[str, Counter[str]] = {}
    complaints: list[str] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        waiting = {pool.submit(judge, answer, range(asked.repeats)): answer for answer in chosen}
        for done, future in enumerate(as_completed(waiting), 1):
            answer = waiting[future]
            faults, said = future.result()
            row = table.setdefault(f"{answer.lab} {answer.function}", Counter())
            row[answer.kind] += 1
            row.update(faults)
            complaints += said
            print(f"\r{done} of {len(chosen)} answers", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for answer in answers("cheat"):
        if f"{answer.lab} {answer.function}" in table:
            table[f"{answer.lab} {answer.function}"]["cheat"] += 1
    width = max(map(len, table), default=5)
    print(f"{'piece':<{width}}  " + "  ".join(COLUMNS))
    for name in sorted(table):
        print(f"{name:<{width}}  " + "  ".join(f"{table[name][column]:>{len(column)}}" for column in COLUMNS))
    print(f"{len(chosen)} answers, {asked.repeats} times each (cheats: counted here, run by `make test`)")
    print("\n\n".join(complaints[:20]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
