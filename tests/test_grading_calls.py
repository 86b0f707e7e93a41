"""Calls of an answer's methods are noted beside its stream, read as untrusted data, and lead to the right line."""

from __future__ import annotations

from typing import Any

import pytest

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.state_log import StateEntry
from xinfer_lab.grading import examine
from xinfer_lab.grading.programs.calls import Call, NotedRing, read_calls
from xinfer_lab.grading.student_line import raised_at, watch_return
from xinfer_lab.grading.values import BadData
from xinfer_lab.views.state_strip import state_strip

CALL: dict[str, Any] = {"name": "retire", "begin": 3, "end": 5, "values": [7]}


class Ring:
    """A ring whose allocate submits a command and gives back a range, and whose retire breaks."""

    def __init__(self, device: EmulatedDevice) -> None:
        self.heap = device.create_upload_heap(512, "staging")
        self.queue, self.fence = device.copy_queue, device.create_fence("fence")

    def allocate(self, size: int) -> int:
        self.queue.signal(self.fence, 1)
        return 256

    def retire(self, fence: object, value: int) -> None:
        raise LookupError(value)


class Noting(EmulatedDevice):
    """A device that keeps calls."""

    def __init__(self) -> None:
        super().__init__(check=False)
        self.calls: list[dict[str, Any]] = []


def test_a_call_says_which_commands_were_issued_within_it_and_also_when_it_raises() -> None:
    with Noting() as device:
        ring = NotedRing(device, Ring(device))
        begin = len(device.stream)
        assert ring.allocate(100) == 256 and ring.heap.name == "staging"
        with pytest.raises(LookupError):
            ring.retire("no fence", 10**30)
        calls = read_calls(device.calls)
    assert calls == (
        Call("allocate", begin, begin + 1, ("staging", 256, 100)),
        Call("retire", begin + 1, begin + 1, (0,)),
    )


def test_a_device_that_keeps_no_calls_runs_the_ring_all_the_same() -> None:
    with EmulatedDevice(check=False) as device:
        assert NotedRing(device, Ring(device)).allocate(1) == 256


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {**CALL, "more": 1},
        {**CALL, "begin": 6},
        {**CALL, "begin": -1},
        {**CALL, "end": "5"},
        {**CALL, "values": [1.5]},
        {**CALL, "values": [True]},
    ],
)
def test_a_call_of_another_form_is_no_call(wrong: dict[str, Any]) -> None:
    assert read_calls([CALL]) == (Call("retire", 3, 5, (7,)),)
    with pytest.raises(BadData):
        read_calls([wrong])
    with pytest.raises(BadData):
        read_calls(wrong)


def test_the_line_of_a_class_is_that_of_the_method_which_returned_last() -> None:
    class Answer:
        def __init__(self) -> None:
            self.value = 1

        def first(self) -> int:
            return self.value

        def last(self) -> int:
            return self.value + 1

    with watch_return(Answer) as watch:
        answer = Answer()
        answer.first(), answer.last()
    assert watch.line is not None and watch.line.text == "return self.value + 1"


def test_a_line_of_pythons_own_library_is_no_line_of_a_student() -> None:
    import json

    try:
        json.loads("{")
    except ValueError as error:
        assert error.__traceback__ is not None
        line = raised_at(error.__traceback__.tb_next)
    assert line is None


def test_what_is_no_class_among_the_parts_of_the_gate_is_told_without_a_line_of_the_library() -> None:
    report = examine("lab2.gate", {"StagingRing": 1, "CopyEngine": 2, "SerialLayers": 3})
    assert not report.passed and "contextlib" not in str(report) and "self.gen" not in str(report)


def test_the_words_of_a_long_strip_say_that_they_are_not_all_and_leave_out_no_refusal() -> None:
    device = EmulatedDevice(check=False)
    from xinfer_lab.device.state_log import state_log

    buffer, other = device.create_buffer(256, "buffer"), device.create_buffer(256, "other")
    for _ in range(12):
        device.copy_queue.copy(other, buffer)
    with device.direct_queue.record("in the middle") as commands:
        commands.copy(buffer, other)
        commands.transition(buffer, "COMMON", "NON_PIXEL_SHADER_RESOURCE")
    entries: list[StateEntry] = list(state_log(device.stream, "buffer", device.kernels))
    assert len(entries) > 20
    picture = state_strip(entries, title="Long")
    assert "refused" in picture.alt and f"all {len(entries)} are in the table" in picture.alt
    assert "barrier from COMMON" in picture.svg or "from COMMON" in picture.svg
    device.close()
