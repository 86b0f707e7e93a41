"""Faults that real engines shipped, written with this package's devices: each is reported, and mended it is not.

Each program takes a device and whether it is mended. The verdict is the same on a GPU and without one.
"""

import pytest

from tests.device_programs import DEVICES, floats


def waits_on_its_own_queue(device, mended):
    """The wait for the upload was asked for inside the block that had switched to the copy queue."""
    up, b, back = device.create_upload_heap(64), device.create_buffer(64, "slot"), device.create_readback_heap(64)
    uploaded, done = device.create_fence("uploaded"), device.create_fence("done")
    up.write(0, bytes(64))
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(uploaded, 1)
    (device.direct_queue if mended else device.copy_queue).wait(uploaded, 1)
    device.direct_queue.copy(back, b)
    device.direct_queue.signal(done, 1)
    done.wait(1)


def frees_what_is_still_used(device, mended):
    """The host let the weights go while the kernel that read them was queued."""
    up, weight, total = (
        device.create_upload_heap(32),
        device.create_buffer(32, "weight"),
        device.create_buffer(32, "total"),
    )
    done = device.create_fence("done")
    up.write(0, floats(*range(8)))
    device.direct_queue.copy(weight, up)
    device.direct_queue.copy(total, up)
    device.direct_queue.dispatch("fold", total=total.view("float32", (8,)), weight=weight.view("float32", (8,)))
    device.direct_queue.signal(done, 1)
    if mended:
        done.wait(1)
    weight.free()
    done.wait(1)


def refills_before_it_was_read(device, mended):
    """A buffer of the copy queue was used again before the direct queue had read it."""
    up, b, back = device.create_upload_heap(64), device.create_buffer(64, "slot"), device.create_readback_heap(64)
    uploaded, consumed = device.create_fence("uploaded"), device.create_fence("consumed")
    up.write(0, bytes(64))
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(uploaded, 1)
    device.direct_queue.wait(uploaded, 1)
    device.direct_queue.copy(back, b)
    device.direct_queue.signal(consumed, 1)
    if mended:
        device.copy_queue.wait(consumed, 1)
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(uploaded, 2)
    uploaded.wait(2)


def changes_the_source_of_a_copy(device, mended):
    """The pinned source was written again before its asynchronous copy had run."""
    up, b, uploaded = (
        device.create_upload_heap(64, "staging"),
        device.create_buffer(64),
        device.create_fence("uploaded"),
    )
    up.write(0, bytes(64))
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(uploaded, 1)
    if mended:
        uploaded.wait(1)
    up.write(32, bytes(32))


def reads_before_the_fence(device, mended):
    """The host read a device-to-host copy that had perhaps not run."""
    b, back, read = device.create_buffer(64), device.create_readback_heap(64, "result"), device.create_fence("read")
    device.direct_queue.copy(back, b)
    device.direct_queue.signal(read, 1)
    if mended:
        read.wait(1)
    back.read("uint8", (8,))


CASES = [
    (waits_on_its_own_queue, {"self-wait", "read-after-write"}, "the direct queue"),
    (frees_what_is_still_used, {"use-after-free"}, "weight"),
    (refills_before_it_was_read, {"write-after-read"}, "the copy queue has to wait for consumed >= 1"),
    (changes_the_source_of_a_copy, {"host-write"}, "the host has to wait for uploaded >= 1"),
    (reads_before_the_fence, {"host-read"}, "the host has to wait for read >= 1"),
]
IDS = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize("open_device", DEVICES)
@pytest.mark.parametrize(("program", "kinds", "advice"), CASES, ids=IDS)
def test_the_fault_is_reported_with_both_lines_and_what_is_missing(open_device, program, kinds, advice):
    with open_device(check=True, on_hazard="collect") as device:
        program(device, mended=False)
    assert {hazard.kind for hazard in device.hazards} == kinds
    report = "\n".join(hazard.report() for hazard in device.hazards)
    assert report.count("test_device_cases.py:") >= 2 and advice in report


@pytest.mark.parametrize("open_device", DEVICES)
@pytest.mark.parametrize("program", [case[0] for case in CASES], ids=IDS)
def test_mended_it_is_not(open_device, program):
    with open_device(check=True, on_hazard="collect") as device:
        program(device, mended=True)
    assert not device.hazards and not device.state_faults


@pytest.mark.parametrize("program", [case[0] for case in CASES], ids=IDS)
def test_the_verdict_does_not_hang_on_the_schedule_or_the_run(program):
    reports = set()
    for schedule in ("timed", "copies_first", "copies_last", "random(1)", "random(2)", "timed"):
        with DEVICES[0].values[0](schedule=schedule) as device:
            program(device, mended=False)
        reports.add(tuple(hazard.report() for hazard in device.hazards))
    assert len(reports) == 1
