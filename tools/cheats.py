"""Mark every cheat of the bank for real: recorded in the sandbox and without one, verified apart.

Prints how each came out. Status 1 if a cheat earns a point that it must not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.answer_bank import CHECK, SOURCES, Answer, answers, defines  # noqa: E402
from tests.conftest import bubblewrap_works  # noqa: E402
from tests.marking import BARE  # noqa: E402
from tests.notebooks import mark, read, submission, text  # noqa: E402
from xinfer_lab.course.lab import Lab, find_lab  # noqa: E402
from xinfer_lab.course.mark_submission import Marker  # noqa: E402
from xinfer_lab.course.notebook import parse_notebook  # noqa: E402
from xinfer_lab.course.sandbox import open_sandbox  # noqa: E402


def lab_of(answer: Answer) -> Lab:
    """The cheat's lab, with no more graded cells than the cheat must fail."""
    source = SOURCES[answer.lab]
    lab = find_lab(ROOT, source.parent.name, source.name)
    wanted = {
        mark(cell)["grade_id"]
        for cell in read(source)["cells"]
        if mark(cell).get("grade") and {piece for piece, _ in CHECK.findall(text(cell))} & answer.checks
    }
    return replace(lab, graded=tuple(graded for graded in lab.graded if graded.grade_id in wanted))


def judge(answer: Answer, sandbox: str) -> list[str]:
    """What came of each check that ``answer`` must fail, as "passed", "failed", ..."""

    def change(cell: str, given: str) -> str:
        return answer.path.read_text(encoding="utf-8") if defines(given, answer.function) else given

    notebook = parse_notebook(submission(SOURCES[answer.lab], change))
    with Marker(open_sandbox(sandbox, hidden=(ROOT,))) as marker:
        marking = marker.mark(lab_of(answer), notebook)
    return [verdict.status.value for verdict in marking.verdicts]


def main() -> int:
    """Mark them and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a beginning of the answers' names, such as lab2/StagingRing")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    asked = parser.parse_args()
    chosen = [answer for answer in answers("cheat") if answer.name.startswith(asked.only)]
    places = ["bubblewrap", BARE] if bubblewrap_works() else [BARE]
    counts: dict[str, Counter[str]] = {place: Counter() for place in places}
    faults = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        waiting = {pool.submit(judge, answer, place): (answer, place) for answer in chosen for place in places}
        for done, future in enumerate(as_completed(waiting), 1):
            answer, place = waiting[future]
            statuses = future.result()
            counts[place].update(statuses)
            if not statuses or "passed" in statuses:
                faults.append(f"{answer.name}, sandbox {place}: {statuses}")
            print(f"{done} of {len(waiting)}: {answer.name}, {place}: {', '.join(statuses)}", flush=True)
    for place, found in counts.items():
        print(
            f"{len(chosen)} cheats, sandbox {place}: " + ", ".join(f"{count} {name}" for name, count in found.items())
        )
    print("\n".join(faults) or "No cheat earned a point.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
