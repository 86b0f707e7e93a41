"""Lab 3: the ring takes its decisions from outside, formulas agree with the clock, and recordings are not believed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.grading import check, examine, find_piece, pieces_of
from xinfer_lab.grading.denial import DeniedModule
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import cases_from_data, cases_to_data
from xinfer_lab.grading.programs.model_case import ModelCase, run_model
from xinfer_lab.labs.lab3.given.ring import SlotRing, streaming_from
from xinfer_lab.labs.lab3.parts import neighbours
from xinfer_lab.qwen2 import SyntheticSpec
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.factories import resident_layers, serial_layers, streaming_layers
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.lab_gpu import lab_gpu
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import SizedWeights

PROGRAMS = ("ensure", "wait_until_read", "prefetch", "prefetch_ahead", "release")


def parts(**own: Any) -> Mapping[str, Any]:
    return {**neighbours(""), **own}


def stream(case: ModelCase, given_parts: Mapping[str, Any], **options: Any) -> EmulatedDevice:
    def make(device: Any, weights: Any) -> SlotRing:
        layout, config = layer_layout(weights.config), weights.config
        host = PinnedLayers(device, layout, config.num_hidden_layers)
        return streaming_from(**given_parts)(device, layout, config.dtype, host, config.num_hidden_layers, case.pool)

    device = EmulatedDevice(memory=case.memory, **options)
    run_model(case, case.weights(), device, make)
    return device


def drawn(piece: str = "lab3.release", seed: int = 3) -> ModelCase:
    return ModelCase.of(find_piece(piece).draw(seed)[0].inputs)


def test_a_ring_made_of_the_right_parts_has_no_hazard_and_no_state_fault_and_gives_its_memory_back() -> None:
    device = stream(drawn(), parts(), check=True)
    assert device.hazards == [] and device.state_faults == []
    assert not any(name.startswith("slot[") for name in device.memory.use().holders)


def test_an_ensure_that_hands_nothing_over_is_told_what_it_has_to_return() -> None:
    with pytest.raises(TypeError, match="hand_over"):
        stream(drawn(), parts(ensure=lambda ring, layer: None))


@pytest.mark.parametrize("name", list(neighbours("")))
def test_from_a_given_part_no_other_part_can_be_reached(name: str) -> None:
    part = neighbours("")[name]
    assert set(part.__globals__) == {"__builtins__"} and part.__closure__ is None


@pytest.mark.parametrize("name", ["ensure", "wait_until_read", "prefetch", "release"])
def test_the_part_that_is_asked_for_is_not_given(name: str) -> None:
    assert name not in neighbours(name)


def test_the_part_that_is_asked_for_cannot_be_imported_while_an_answer_is_recorded() -> None:
    def ensure(ring: Any, layer: int) -> Any:
        from xinfer_lab.labs.lab3.parts.ensure import ensure as given_part

        return given_part(ring, layer)

    report = examine("lab3.ensure", ensure)
    assert not report.passed and "module that holds the answer" in report.headline
    assert issubclass(DeniedModule, ImportError)


@settings(max_examples=15)
@given(layers=st.integers(3, 12), ratio=st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0)))
def test_pass_times_are_what_the_clock_says_of_the_package_itself(layers: int, ratio: float) -> None:
    config = SyntheticSpec(layers=layers, hidden=64, heads=2, kv_heads=2, intermediate=192, vocab=64).config()
    times = judge_of("lab3.pass_times").truth({"layers": layers, "t_trans": 1.0, "t_comp": ratio})
    makes = {"resident": resident_layers(), "serial": serial_layers(), "streamed": streaming_layers(2)}
    for name, make in makes.items():
        with SimulatedDevice(lab_gpu(config, ratio), memory=None, check=False) as device:
            model = QwenModel(SizedWeights(config), device, make, context=4)
            first = len(device.stream)
            model.forward(torch.zeros(1, 1, dtype=torch.int64))
            duration = device.timeline().since(first).duration * 1e3
            model.close()
        # The clock also counts the output head and the tokens, about a tenth of a layer.
        assert times[name] <= duration <= times[name] + 0.1 * max(1.0, ratio), name


def test_hiding_follows_from_the_gpu_s_own_times() -> None:
    from xinfer_lab.device.gpu_spec import GpuSpec
    from xinfer_lab.device.kernels import Cost

    truth = judge_of("lab3.tokens_to_hide").truth
    for seed in range(20):
        for case in find_piece("lab3.tokens_to_hide").draw(seed):
            inputs, gpu = case.inputs, GpuSpec(**case.inputs["gpu"])
            tokens, nbytes = truth(inputs), inputs["layer_bytes"]

            def hidden(count: int, inputs: Any = inputs, gpu: GpuSpec = gpu, nbytes: int = nbytes) -> bool:
                return gpu.copy_time(nbytes) <= gpu.dispatch_time(Cost(count * inputs["flops_per_token"], nbytes))

            assert hidden(tokens) and (tokens == 1 or not hidden(tokens - 1)), case.label


def test_every_choice_of_pools_has_2_3_4_and_5_slots_one_that_divides_the_layers_and_one_that_does_not() -> None:
    for name in (*PROGRAMS, "gate"):
        for seed in range(20):
            shapes = [(case.inputs["layers"], case.inputs["pool"]) for case in find_piece(f"lab3.{name}").draw(seed)]
            assert any(layers % pool == 0 for layers, pool in shapes) and any(layers % pool for layers, pool in shapes)
            assert {pool for _, pool in shapes} == {2, 3, 5, 8}, name


def test_an_ensure_that_hands_over_another_layer_is_told_which_one() -> None:
    def ensure(ring: Any, layer: int) -> Any:
        slot = ring.slot_of(ring.step)
        ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
        return ring.hand_over(slot, 0)

    with pytest.raises(ValueError, match="asked for layer 1, but hands over layer 0"):
        stream(drawn(), parts(ensure=ensure))


def test_a_loop_that_goes_on_at_a_tie_is_told_of_the_tie_and_of_nothing_else() -> None:
    def tokens_to_hide(layer_bytes: int, flops_per_token: int, gpu: Any) -> int:
        t_trans, tokens = gpu.link_latency + layer_bytes / gpu.link_bandwidth, 1
        reading = layer_bytes / gpu.memory_bandwidth
        while gpu.launch_time + max(tokens * flops_per_token / gpu.flops, reading) <= t_trans:
            tokens += 1
        return tokens

    report = examine("lab3.tokens_to_hide", tokens_to_hide)
    assert report.misconception and report.misconception.name == "A tie is not taken for hidden"


def test_a_recording_that_no_device_would_take_is_refused_and_breaks_nothing() -> None:
    piece = find_piece("lab3.release")
    cases = piece.draw(0)[:1]
    data = piece.record(neighbours("")["release"], cases)
    records = data["outcomes"][0]["stream"]["records"]
    data["outcomes"][0]["stream"]["records"] = [record for record in records if record["op"] != "allocate"]
    report = piece.verify(cases_from_data(cases_to_data(cases)), data)
    assert not report.passed and "cannot be run" in report.headline


def test_an_answer_that_hangs_again_while_the_pass_is_left_is_stopped_again() -> None:
    def ensure(ring: Any, layer: int) -> Any:
        while ring.step == 3:
            pass
        slot = ring.slot_of(ring.step)
        ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
        return ring.hand_over(slot, layer)

    piece = dataclasses.replace(find_piece("lab3.ensure"), cpu_seconds=0.3)  # type: ignore[type-var]
    data = piece.record(ensure, piece.draw(0))
    assert data["outcomes"][-1]["raised"]["type"] == "AnswerTimeout" and len(data["outcomes"]) == 1


def test_a_program_without_end_is_stopped_by_its_commands() -> None:
    def prefetch(ring: Any) -> None:
        while True:
            ring.engine.upload(0, ring.slots[0])

    report = examine("lab3.prefetch", prefetch)
    assert not report.passed and "too long" in report.headline and report.got and "commands" in report.got


def test_a_failing_program_shows_its_schedule_with_words(capsys: pytest.CaptureFixture[str]) -> None:
    report = examine("lab3.wait_until_read", lambda ring, step: None)
    assert report.picture and report.picture.alt and "layer" in report.picture.table
    check("lab3.wait_until_read", neighbours("")["wait_until_read"])
    said = capsys.readouterr()
    assert said.out.startswith("lab3.wait_until_read: passed.") and said.err == ""


def test_a_signal_in_ensure_is_told_to_come_before_the_read() -> None:
    def ensure(ring: Any, layer: int) -> Any:
        slot = ring.slot_of(ring.step)
        ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
        ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
        return ring.hand_over(slot, layer)

    def release(ring: Any, layer: int) -> None:
        ring.step += 1
        ring.prefetch()

    report = examine("lab3.gate", dict(parts(ensure=ensure, release=release)))
    assert not report.passed and report.misconception
    assert report.misconception.name == "The signal comes before the read"


def test_no_report_shows_a_line_of_a_part_that_is_given() -> None:
    def wait_until_read(ring: Any, step: int) -> None:
        if step >= len(ring.slots):
            ring.device.direct_queue.wait(ring.consumed, step - len(ring.slots) + 1)

    report = str(examine("lab3.wait_until_read", wait_until_read))
    assert "lab3/parts/release.py" in report and "direct_queue.signal(" not in report


def test_every_piece_of_the_lab_has_a_judge() -> None:
    for piece in pieces_of("lab3"):
        assert judge_of(piece.name).passed
