"""What `tools/gpu_labs.py` counts as a measured timeline, and what it complains of."""

from __future__ import annotations

import dataclasses

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

from tools.gpu_labs import Run, chosen, differences, measured, wrong_totals
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.qwen2 import SyntheticSpec
from xinfer_lab.residency.factories import serial_layers
from xinfer_lab.residency.lab_gpu import lab_gpu
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import SyntheticWeights
from xinfer_lab.views.compare import compare_timelines
from xinfer_lab.views.timeline_svg import timeline_svg

SMALL = SyntheticSpec(layers=3, hidden=16, heads=2, kv_heads=1, intermediate=24, vocab=64).config()
GPU = "NVIDIA H200"


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    import torch

    with EmulatedDevice(spec=lab_gpu(SMALL, 1.0)) as device:
        model = QwenModel(SyntheticWeights(SMALL, seed=1), device, serial_layers(), context=8)
        model.forward(torch.tensor([[1, 2]]))
        model.close()
        return device.timeline()


def shown(picture: object) -> NotebookNode:
    cell = new_code_cell("CudaDevice(measure=True)")
    cell.outputs = [new_output("display_data", data={"text/html": picture._repr_html_()})]  # type: ignore[attr-defined]
    return cell


def test_a_timeline_that_the_gpu_measured_is_found_alone_and_beside_another(timeline: Timeline) -> None:
    real = dataclasses.replace(timeline, clock=GPU)
    (words,) = measured(shown(timeline_svg(real, title="Serial on a GPU")), GPU)
    assert words.startswith(f"{len(real.events)} events in ") and words.endswith(f" on {GPU}")
    pair = compare_timelines(real, real, title="Measured", names=("serial", "streamed"))
    assert len(list(measured(shown(pair), GPU))) == 2


def test_a_timeline_of_the_virtual_clock_an_empty_one_and_words_are_none(timeline: Timeline) -> None:
    assert not list(measured(shown(timeline_svg(timeline, title=f"Serial on {GPU}")), GPU))
    empty = dataclasses.replace(timeline, events=(), flows=(), clock=GPU)
    assert not list(measured(shown(timeline_svg(empty, title="Nothing")), GPU))
    said = new_code_cell("")
    said.outputs = [new_output("stream", text=f"24 events in 10 µs on {GPU}.")]
    assert not list(measured(said, GPU))


def a_run(folder: str, device: str, **points: float) -> Run:
    return Run("a run", "lab", folder, device, in_notebook=dict(points), marked=dict(points), most=5)


def test_points_that_differ_and_totals_that_should_not_be_are_told() -> None:
    full = a_run("solutions", "GPU", gate=3, piece=2)
    assert differences(full, a_run("solutions", "emulated", gate=3, piece=2)) == []
    (one, other) = differences(full, a_run("solutions", "emulated", gate=0, piece=2))
    assert "gate has 3 on GPU and 0 on emulated" in one and one == other
    assert wrong_totals(full) == [] and wrong_totals(a_run("labs", "GPU", gate=0, piece=0)) == []
    assert len(wrong_totals(a_run("solutions", "GPU", gate=3, piece=0))) == 2
    assert len(wrong_totals(a_run("labs", "GPU", gate=3, piece=0))) == 2
    full.in_notebook.pop("gate")
    assert any("graded in one way alone: ['gate']" in fault for fault in wrong_totals(full))


def test_labs_are_chosen_by_the_beginnings_of_their_names_and_one_that_no_lab_has_is_told() -> None:
    assert len(chosen([""])) == 6
    assert chosen(["lab5", "lab6"]) == ["lab5-page-pool", "lab6-beat-the-link"]
    with pytest.raises(ValueError, match="'lab9'; there are lab1-residency, lab2"):
        chosen(["lab5", "lab9"])
