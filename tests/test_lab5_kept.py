"""Lab 5's parts in a student's engine: kept as files, and a model runs with them outside of the notebook."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.engines import names_of
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.engine.parts import find_parts
from xinfer_lab.grading.keep import VARIABLE, keep
from xinfer_lab.grading.part import parts_of
from xinfer_lab.grading.source_of import source_of
from xinfer_lab.labs.lab5.mixture_case import MixtureCase, resident_run, run_mixture, with_memory
from xinfer_lab.labs.lab5.parts import PARTS
from xinfer_lab.residency.parity import compare_logits

CASE = MixtureCase(
    layers=2, experts=4, per_token=2, steps=4, prompt=3, batch=1, frames=6, dtype="float32", seed=5, memory=0
)


def test_the_kept_parts_are_those_that_a_pool_is_made_of() -> None:
    assert [part.code for part in parts_of("lab5")] == list(PARTS.values())


def test_a_model_whose_experts_do_not_fit_runs_with_the_kept_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    names = names_of("lab5")
    for part in parts_of("lab5"):
        said = [keep(check, names[part.code]) for check in part.checks]
        assert said[-1] == f"Kept as my_engine/{part.name}.py."
    found = {one.part.code: one for one in find_parts(tmp_path).values() if one.lab == "lab5"}
    assert {one.status for one in found.values()} == {"yours"}
    case = with_memory(CASE)
    pool, logits = run_mixture(case, {name: one.code for name, one in found.items()}, EmulatedDevice)
    equal, _ = compare_logits(resident_run(case).logits, logits)
    assert equal and pool.statistics().bytes_to_device > 0


@pytest.mark.parametrize("methods", ["", "    def twice(self) -> int:\n        return 2 * self.size\n"])
def test_a_dataclass_of_the_notebook_comes_along(methods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"@dataclass\nclass Box:\n    size: int = 7\n{methods}\n\ndef Clock():\n    return Box().size\n"
    place = f"<a box {len(methods)}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    names: dict[str, Any] = {"__name__": "__main__", "dataclass": dataclass}
    exec(compile(source, place, "exec", dont_inherit=True), names)
    alone: dict[str, Any] = {"__name__": "alone"}
    monkeypatch.setitem(sys.modules, "alone", ModuleType("alone"))
    exec(source_of(names["Clock"]), alone)
    assert alone["Clock"]() == 7 and hasattr(alone["Box"], "twice") == bool(methods)
