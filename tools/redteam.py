"""Wrong answers drawn from the reference answers, by the kinds that graders have let through; prints what passes.

Each function and class that a lab asks for is changed in one way at a time: refusals happen by accident, the host waits
in disguise, objects share their books, numbers are compared by identity or kept in 64 bits, arguments are overwritten,
memory is pinned in passing, a third queue is used, small domains alone are right. Every such answer is asked what its
checks ask, with cases that are drawn anew. What passes is printed; status 1 then.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import linecache
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.answer_bank import SOURCES, checks_of, compiled, concerned, defines, functions_of, given_and_answers
from tests.examining import Examiner
from xinfer_lab.grading import find_piece
from xinfer_lab.grading.programs.record_program import ProgramPiece

Change = Callable[[ast.Module, Random], "str | None"]
"""Changes a tree in place; what it did, or None where there is nothing to change."""

HELPERS = '''
def _found(*objects):
    """The device and the fences that are within reach of what a part was given."""
    from xinfer_lab.device.fence import Fence
    from xinfer_lab.device.device import Device

    device, fences, todo, seen = None, [], list(objects), set()
    while todo and len(seen) < 60:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Fence):
            fences.append(one)
            device = device or one.device
        elif isinstance(one, Device):
            device = device or one
        elif hasattr(one, "__dict__"):
            todo += list(vars(one).values())
    return device, fences


def _wait_in_disguise(*objects):
    device, fences = _found(*objects)
    if device is not None:
        own = device.create_readback_heap(1, device.fresh_name("own"))
        for fence in fences:
            if fence.last_submitted:
                fence.wait(fence.last_submitted)
                own.read("uint8", (1,))
        own.free()


def _pin(*objects):
    device, _ = _found(*objects)
    if device is not None:
        device.create_upload_heap(65_536, device.fresh_name("scratch")).free()


def _third_queue(*objects):
    device, fences = _found(*objects)
    for fence in fences:
        if fence.last_submitted:
            device.write_back_queue.wait(fence, fence.last_submitted)


def _sleep(*objects):
    __import__("time").sleep(0.00001)


def _each_int(change, value):
    if type(value) is int:
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_each_int(change, one) for one in value)
    return {key: _each_int(change, one) for key, one in value.items()} if type(value) is dict else value


def _in_64_bits(value):
    return _each_int(lambda number: (number + 2**63) % 2**64 - 2**63, value)


def _off_above(value):
    return _each_int(lambda number: number + (number > 256), value)


def _overwrite(*objects):
    for one in objects:
        if isinstance(one, dict):
            one["overwritten"] = one.pop(next(iter(one), None), None)
        elif isinstance(one, list):
            one.append(None)
'''


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Every function and method of an answer, without the constructor."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node for node in found if not node.name.startswith("__") and node.name != "close"]


def at_the_start_of(call: str) -> Change:
    """Every function calls ``call`` with all its arguments before anything else."""

    def change(tree: ast.Module, random: Random) -> str | None:
        for node in functions(tree):
            names = ", ".join(argument.arg for argument in node.args.args)
            node.body.insert(1 if ast.get_docstring(node) else 0, ast.parse(f"{call}({names})").body[0])
        return f"each function begins with {call}"

    return change


def around_results(call: str, arguments: bool) -> Change:
    """What every function returns goes through ``call``; or its arguments do, once the result is known."""

    def change(tree: ast.Module, random: Random) -> str | None:
        for node in functions(tree):
            names = ", ".join(argument.arg for argument in node.args.args)
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    value = ast.unparse(inner.value)
                    new = f"({value}, {call}({names}))[0]" if arguments else f"{call}({value})"
                    inner.value = ast.parse(new, mode="eval").body
        return f"results go through {call}"

    return change


def shared_books(tree: ast.Module, random: Random) -> str | None:
    """An attribute that a class keeps is kept in the class."""
    kept = [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    ]
    if not kept:
        return None
    name = random.choice(sorted({target.attr for target in kept}))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == "self":
            node.value = ast.parse("type(self)", mode="eval").body
    return f"self.{name} belongs to the class"


def by_identity(tree: ast.Module, random: Random) -> str | None:
    """A comparison of numbers goes by identity."""
    whole = {ast.Eq: "{a} is {b}", ast.NotEq: "{a} is not {b}", ast.GtE: "{a} > {b} or {a} is {b}"}
    whole[ast.LtE] = "{a} < {b} or {a} is {b}"
    places = [n for n in ast.walk(tree) if isinstance(n, ast.Compare) and len(n.ops) == 1 and type(n.ops[0]) in whole]
    places = [n for n in places if not any(isinstance(m, ast.Constant) for m in (n.left, *n.comparators))]
    if not places:
        return None
    node = random.choice(places)
    before = ast.unparse(node)
    sides = {"a": ast.unparse(node.left), "b": ast.unparse(node.comparators[0])}
    replace(tree, node, whole[type(node.ops[0])].format(**sides))
    return f"{before} by identity"


def by_floats(tree: ast.Module, random: Random) -> str | None:
    """A division of whole numbers is one of floats, cut off."""
    places = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv | ast.Mod)]
    if not places:
        return None
    node = random.choice(places)
    a, b, before = ast.unparse(node.left), ast.unparse(node.right), ast.unparse(node)
    new = f"int(({a}) / ({b}))"
    replace(tree, node, new if isinstance(node.op, ast.FloorDiv) else f"({a}) - {new} * ({b})")
    return f"{before} by floats"


def by_accident(tree: ast.Module, random: Random) -> str | None:
    """A refusal becomes something that breaks with an exception of the same family."""
    places = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    if not places:
        return None
    node = random.choice(places)
    before = ast.unparse(node)
    accident = random.choice(("[].remove(0)", "(lambda f: f(f))(lambda f: f(f))", "int('no number')", "next(iter(()))"))
    node.exc = None
    replace(tree, node, accident, statement=True)
    return f"{before} by accident: {accident}"


def let_through(tree: ast.Module, random: Random) -> str | None:
    """One refusal is left out."""
    places = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    if not places:
        return None
    node = random.choice(places)
    before = ast.unparse(node)
    replace(tree, node, "pass", statement=True)
    return f"without {before}"


def remembers(tree: ast.Module, random: Random) -> str | None:
    """A function counts its calls and is right the first few times only."""
    node = random.choice(functions(tree))
    names = [argument.arg for argument in node.args.args]
    returns = [inner for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value is not None]
    if not returns or "self" in names or "ring" in names:
        return None
    kept = ast.parse("_first = []").body[0]
    tree.body.insert(0, kept)
    for inner in returns:
        value = ast.unparse(inner.value)  # type: ignore[arg-type]
        inner.value = ast.parse(f"(_first.append({value}) or _first)[min(len(_first) - 1, 1)]", mode="eval").body
    return "the second answer is given for ever"


EQUIVALENT = {
    ("layer_bytes", "64 bits"): "a layer of 2**63 bytes is more than a config may describe",
    ("layer_bytes", "floats"): "a width of a head divides, and is far below 2**53",
    ("kv_cache_bytes", "floats"): "a width of a head divides, and is far below 2**53",
    **{
        (name, "overwrites"): "its arguments are numbers"
        for name in ("layer_of", "slot_of", "pass_times", "tokens_to_hide")
    },
    ("layer_of", "floats"): "steps are far below 2**53, so that whoever counts them one by one comes to an end",
    ("slot_of", "floats"): "steps are far below 2**53, so that whoever counts them one by one comes to an end",
    ("wait_until_read", "identity"): "a pool has few slots, and Python keeps one object of each small number",
    ("layer_of", "small domain"): "a layer's number",
    ("slot_of", "small domain"): "a slot's number",
    ("layer_of", "64 bits"): "a layer's number",
    ("slot_of", "64 bits"): "a slot's number",
    ("tokens_to_hide", "64 bits"): "no GPU needs so many tokens",
    ("pass_times", "64 bits"): "a pass of 2**63 µs is no pass",
}
"""Function and kind: why nothing is changed that anybody could notice."""

KINDS: dict[str, Change] = {
    "sleeps": at_the_start_of("_sleep"),
    "waits in disguise": at_the_start_of("_wait_in_disguise"),
    "pins in passing": at_the_start_of("_pin"),
    "a third queue": at_the_start_of("_third_queue"),
    "64 bits": around_results("_in_64_bits", arguments=False),
    "overwrites": around_results("_overwrite", arguments=True),
    "shared books": shared_books,
    "identity": by_identity,
    "floats": by_floats,
    "accident": by_accident,
    "let through": let_through,
    "small domain": around_results("_off_above", arguments=False),
    "remembers": remembers,
}


OF_RESULTS = ("64 bits", "overwrites", "small domain", "remembers")
"""Kinds for functions of numbers alone: what a program does is in its commands."""
ON_A_DEVICE = ("sleeps", "waits in disguise", "pins in passing", "a third queue")
"""Kinds for programs alone: a function of numbers may take its time."""


def kinds_of(lab: str, function: str) -> list[str]:
    """The kinds that concern an answer to ``function``."""
    programs = any(isinstance(find_piece(check), ProgramPiece) for check in concerned(lab, function)[:1])
    kinds = [kind for kind in KINDS if kind not in (OF_RESULTS if programs else ON_A_DEVICE)]
    return [kind for kind in kinds if (function, kind) not in EQUIVALENT]


def replace(tree: ast.Module, old: ast.AST, new: str, *, statement: bool = False) -> None:
    """Put the source ``new`` in the place of the node ``old``."""

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if node is old:
                return ast.parse(new).body[0] if statement else ast.parse(new, mode="eval").body
            return self.generic_visit(node)

    Put().visit(tree)


def drawn(lab: str, function: str, kind: str, random: Random) -> tuple[str, str] | None:
    """What was changed, and the source; None where the kind has nothing to do here."""
    source = next(source for _, source in given_and_answers(lab) if defines(source, function))
    tree = copy.deepcopy(ast.parse(source))
    done = KINDS[kind](tree, random)
    if done is None:
        return None
    changed = ast.unparse(ast.fix_missing_locations(tree))
    return None if changed == ast.unparse(ast.parse(source)) else (done, f"{HELPERS}\n\n{changed}\n")


def passes(lab: str, function: str, source: str, seed: int) -> bool:
    """Whether an answer passes all checks that it can fail."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with redirect_stdout(io.StringIO()):
        for place, given in given_and_answers(lab):
            if defines(given, function):
                given, place = source, f"<redteam {lab} {function}>"
                linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
                exec(compile(given, place, "exec"), names)
            else:
                exec(compiled(given, place), names)
        examiner = Examiner(names, cpu_seconds=5.0)
        checks = concerned(lab, function)
        return all(examiner.report(check, checks_of(lab)[check], seed).passed for check in checks)


def campaign(only: str, seed: int, until: float) -> Iterator[tuple[str, str, bool]]:
    """Answers in no order, each with what it is and whether it passed; once each kind, then others of it."""
    random = Random(seed)
    asked = [
        (lab, function, kind)
        for lab in SOURCES
        for function in sorted(functions_of(lab))
        for kind in kinds_of(lab, function)
    ]
    asked = [one for one in asked if f"{one[0]}/{one[1]}/{one[2]}".startswith(only)]
    known: set[str] = set()
    while time.monotonic() < until:
        fresh = 0
        for lab, function, kind in random.sample(asked, len(asked)):
            if time.monotonic() >= until:
                return
            made = drawn(lab, function, kind, random)
            if made is None or made[1] in known:
                continue
            known.add(made[1])
            fresh += 1
            yield f"{lab}/{function}/{kind}: {made[0]}", made[1], passes(lab, function, made[1], random.randrange(9))
        if not fresh:
            return


def main() -> int:
    """Draw answers for a while and print those that pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a beginning such as lab2/StagingRing/sleeps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0)
    asked = parser.parse_args()
    tried = found = 0
    for told, source, passed in campaign(asked.only, asked.seed, time.monotonic() + 60 * asked.minutes):
        tried += 1
        if passed:
            found += 1
            print(f"PASSED {told}\n{source.removeprefix(HELPERS).strip()}\n", flush=True)
    print(f"{tried} wrong answers, {found} passed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
