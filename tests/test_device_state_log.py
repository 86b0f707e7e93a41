"""A buffer's history says what the device has and what the tracker says, step by step."""

from __future__ import annotations

import pytest

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.state_log import StateEntry, state_log
from xinfer_lab.views.state_strip import state_strip


def reads(*_: object) -> None:
    """A kernel that touches what it declares and nothing else."""


@pytest.fixture
def device() -> EmulatedDevice:
    """A device with a staging heap, a buffer in device memory, and a fence."""
    made = EmulatedDevice()
    made.create_upload_heap(256, "staging").write(0, bytes(256))
    made.create_buffer(256, "buffer")
    return made


def handles(device: EmulatedDevice) -> tuple:
    from xinfer_lab.device.buffers import Buffer, UploadHeap

    return Buffer(device, "buffer", 256), UploadHeap(device, "staging", 256), device.create_fence("copied")


def log(device: EmulatedDevice, buffer: str = "buffer") -> tuple[StateEntry, ...]:
    return state_log(device.stream, buffer, device.kernels)


def states(device: EmulatedDevice) -> list[tuple[str, str, str]]:
    return [(entry.what, entry.device, entry.tracker) for entry in log(device)]


def test_a_call_of_the_copy_queue_leaves_the_tracker_behind_until_it_is_told(device: EmulatedDevice) -> None:
    buffer, staging, fence = handles(device)
    with device.copy_queue.record() as cmds:
        cmds.copy(buffer, staging)
    device.copy_queue.signal(fence, 1)
    device.direct_queue.wait(fence, 1)
    buffer.assume_common()
    with device.direct_queue.record() as cmds:
        cmds.dispatch(reads, reads=[buffer.view("uint8", (256,))], label="a kernel")
    assert states(device) == [
        ("created", "COMMON", "COMMON"),
        ("copy into it", "COPY_DEST", "COPY_DEST"),
        ("end of the call", "COMMON", "COPY_DEST"),
        ("wait >= 1", "COMMON", "COPY_DEST"),
        ("assume_common", "COMMON", "COMMON"),
        ("a kernel", "NON_PIXEL_SHADER_RESOURCE", "NON_PIXEL_SHADER_RESOURCE"),
        ("end of the call", "COMMON", "COMMON"),
    ]
    assert [entry.agree for entry in log(device)] == [True, True, False, False, True, True, True]


def test_a_claim_in_the_middle_of_a_call_parts_the_two_and_the_next_use_is_refused(device: EmulatedDevice) -> None:
    buffer, staging, _ = handles(device)
    with device.direct_queue.record() as cmds:
        cmds.copy(buffer, staging)
        buffer.assume_common()
        cmds.dispatch(reads, reads=[buffer.view("uint8", (256,))], label="a kernel")
    claim, use = (next(entry for entry in log(device) if entry.what == what) for what in ("assume_common", "a kernel"))
    assert (claim.device, claim.tracker, claim.agree) == ("COPY_DEST", "COMMON", False)
    assert "same call" in use.verdict


def test_a_barrier_that_a_list_recorded_by_itself_is_in_the_log(device: EmulatedDevice) -> None:
    buffer, staging, _ = handles(device)
    with device.direct_queue.record() as cmds:
        cmds.dispatch(reads, reads=[buffer.view("uint8", (256,))], label="a kernel")
        cmds.copy(buffer, staging)
    what = [entry.what for entry in log(device)]
    assert what[1:4] == ["a kernel", "barrier NON_PIXEL_SHADER_RESOURCE -> COPY_DEST", "copy into it"]
    assert not any(entry.verdict for entry in log(device))


def test_a_buffer_that_nothing_touches_has_no_history(device: EmulatedDevice) -> None:
    assert log(device, "other") == ()
    assert "Nothing touches" in state_strip(log(device, "other"), title="Empty").alt


def test_the_strip_says_in_words_and_in_its_table_what_it_draws(device: EmulatedDevice) -> None:
    buffer, staging, _ = handles(device)
    with device.copy_queue.record() as cmds:
        cmds.copy(buffer, staging)
    picture = state_strip(log(device), title="One upload")
    assert picture.table[-1] == ("3", "copy", "end of the call", "COMMON", "COPY_DEST", "no", "accepted")
    assert (
        "3, copy: end of the call: device COMMON, tracker COPY_DEST" in picture.alt and "differ 1 times" in picture.alt
    )
    assert picture.svg == state_strip(log(device), title="One upload").svg
    with pytest.raises(ValueError, match="320"):
        state_strip(log(device), title="Narrow", width=319)
