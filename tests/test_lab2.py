"""Lab 2: its answers can be recorded where nothing that holds them is installed, and its rules hold for what they
were made for."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.answer_bank import BANK, checks_of, given_and_answers
from tests.project import ROOT, STUCK
from tests.sample import sampled
from xinfer_lab.course.package_view import make_view
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.grading import cases_to_data, examine, find_piece
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.grading.programs.provenance import read_provenance
from xinfer_lab.labs.lab2.given.one_slot import OneSlot
from xinfer_lab.labs.lab2.judge.ring import places
from xinfer_lab.labs.lab2.judge.staging_rules import pins, waits_for_room_only
from xinfer_lab.labs.lab2.layers import LayerScript
from xinfer_lab.labs.lab2.script import UploadScript

PARTS = ("ring_alignment", "ring_wrap", "ring_wait", "ring_refuse", "upload", "upload_async", "serial", "gate")


@cache
def answers() -> dict[str, Any]:
    """The instructor's answers, by name."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for place, source in given_and_answers("lab2"):
        exec(compile(source, place, "exec"), names)
    return names


@pytest.mark.parametrize("part", sampled(PARTS))
def test_a_part_is_recorded_where_the_modules_that_hold_its_answer_are_not_installed(part: str, tmp_path: Path) -> None:
    piece = find_piece(f"lab2.{part}")
    cases = piece.draw(5)
    view = make_view(piece.denied_modules, tmp_path / "view")
    (tmp_path / "cases.json").write_text(json.dumps(cases_to_data(cases)), encoding="utf-8")
    sources = (source for _, source in given_and_answers("lab2"))
    (tmp_path / "answer.py").write_text("\n\n".join(sources), encoding="utf-8")
    name = checks_of("lab2")[piece.name]
    done = subprocess.run(
        [sys.executable, "-m", "xinfer_lab.grading", "record", piece.name, "cases.json", "answer.py", name],
        cwd=tmp_path,
        env={"PYTHONPATH": str(view.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=STUCK,
    )
    assert done.returncode == 0, done.stderr
    assert not set(piece.denied_modules) & {"xinfer_lab.labs.lab2.pieces", "xinfer_lab.residency.model"}
    report = piece.verify(cases, json.loads(done.stdout))
    assert report.passed, str(report)


@pytest.mark.parametrize("seed", range(30))
def test_scripts_for_the_ring_ask_for_every_rule_of_the_text(seed: int) -> None:
    for part in ("ring_wrap", "ring_wait"):
        for case in find_piece(f"lab2.{part}").draw(seed):
            script = UploadScript.of(case.inputs)
            sizes = [size for _, size in script.ranges]
            starts = places(script.room, sizes)
            ends = [start + -(-size // 256) * 256 for start, size in zip(starts, sizes, strict=True)]
            assert sum(start == 0 for start in starts) >= 4 and max(sizes) == script.room
            assert any(end == script.room and size < script.room for end, size in zip(ends, sizes, strict=True))
            assert all(sum(upload) <= script.room for upload in script.uploads)
    for case in find_piece("lab2.ring_alignment").draw(seed):
        script = UploadScript.of(case.inputs)
        sizes = [size for _, size in script.ranges]
        assert {0, 1} <= {size % 256 for size in sizes} and 1 in sizes
        assert sum(-(-size // 256) * 256 for size in sizes) < script.room


@pytest.mark.parametrize("seed", range(10))
def test_layers_come_in_no_order_and_never_twice_in_a_row_into_one_slot(seed: int) -> None:
    for case in find_piece("lab2.upload").draw(seed):
        order = LayerScript.of(case.inputs).order
        assert all(a[1] != b[1] for a, b in pairwise(order))


class Case:
    """A case for the rules on host memory."""

    memory, steps, layers = None, 1, 1
    read_backs = ("out",)


def staged(*, wait: int | None, reads: int = 1) -> Evidence:
    """Three uploads, the third over the first; before it the host waits for ``wait``."""
    device = EmulatedDevice(check=False)
    heap, buffer = device.create_upload_heap(512, "staging"), device.create_buffer(256, "buffer")
    out, copied = device.create_readback_heap(256, "out"), device.create_fence("copied")
    for number, offset in enumerate((0, 256, 0), 1):
        if number == 3 and wait is not None:
            copied.wait(wait)
        heap.write(offset, bytes([number]) * 256)
        device.copy_queue.copy(buffer, heap.span(offset, 256))
        device.copy_queue.signal(copied, number)
    device.copy_queue.copy(out, buffer)
    device.copy_queue.signal(copied, 4)
    copied.wait(4)
    for _ in range(reads):
        out.read("uint8", (256,))
    return Evidence(Case(), device.stream)


def test_a_wait_for_the_copy_that_is_in_the_way_is_right_and_so_is_the_wait_for_results() -> None:
    assert waits_for_room_only(staged(wait=1)) is None


def test_a_wait_for_a_later_copy_is_longer_than_needed() -> None:
    fault = waits_for_room_only(staged(wait=2))
    assert fault is not None and fault.kind == "waits-too-long" and "copied >= 1" in fault.expected


def test_a_wait_before_nothing_is_written_has_nothing_to_wait_for() -> None:
    device = EmulatedDevice(check=False)
    heap, buffer = device.create_upload_heap(256, "staging"), device.create_buffer(256, "buffer")
    copied = device.create_fence("copied")
    heap.write(0, bytes(256))
    device.copy_queue.copy(buffer, heap)
    device.copy_queue.signal(copied, 1)
    copied.wait(1)
    fault = waits_for_room_only(Evidence(Case(), device.stream))
    assert fault is not None and fault.kind == "host-waits"


@pytest.mark.parametrize(("planned", "right"), [(512, True), (256, False), (1024, False)])
def test_pinned_memory_is_what_was_planned(planned: int, right: bool) -> None:
    fault = pins(lambda _: planned)(staged(wait=1))
    assert (fault is None) == right
    assert pins(lambda _: 0, frozenset({"staging"}))(staged(wait=1)) is None


def test_bytes_left_in_staging_memory_between_two_tensors_are_no_upload() -> None:
    from xinfer_lab.device.records import Copy, Dispatch, HostWrite, Source, Span, View

    def write(name: str, offset: int, size: int) -> HostWrite:
        return HostWrite(dst=Span("staging", offset, size), source=Source(name, 0, size))

    view = View("slot[0].mlp", 0, (32,), "uint8")
    program = read_provenance(
        [
            write("model.layers.7.mlp.up_proj.weight", 0, 1024),
            write("model.layers.2.mlp.up_proj.weight", 0, 32),
            write("model.layers.2.mlp.down_proj.weight", 256, 32),
            Copy(queue="copy", dst=Span("slot[0].mlp", 0, 512), src=Span("staging", 0, 512), call=1),
            Dispatch(queue="direct", kernel="decoder_layer", operands={"mlp.up_proj.weight": view}, call=2),
        ]
    )
    assert [upload.layer for upload in program.uploads] == [2] and program.uploads[0].weight_bytes == 64
    assert program.computes[0].layers == (2,)


def test_one_slot_decides_nothing() -> None:
    with EmulatedDevice() as device:
        source = OneSlot(device, object(), object(), 3)  # type: ignore[arg-type]
        for verb in (source.ensure, source.release):
            with pytest.raises(NotImplementedError, match="built on this one"):
                verb(0)


def test_a_ring_that_waits_needlessly_is_shown_its_schedule_and_its_own_line() -> None:
    path = BANK / "lab2" / "StagingRing" / "wrong" / "waits_for_newest.py"
    names = {**answers(), "__name__": "__main__"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    report = examine("lab2.ring_wait", names["StagingRing"])
    assert report.picture is not None and report.line is not None and "wait(" in report.line
    assert (ROOT / "labs" / "lab2-copy-queue" / "ring.svg").is_file()
