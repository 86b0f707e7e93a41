"""The emulated device: deferral, schedules, poison, and the same bytes whatever the order."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device_programs import SCHEDULES, Ring, emulated, floats
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.records import Copy, HostWait
from xinfer_lab.device.schedules import Step, open_schedule


class Log:
    """Functions to dispatch that say when they run."""

    def __init__(self):
        self.ran = []

    def __call__(self, word):
        def run(*_):
            self.ran.append(word)

        return run


@pytest.fixture
def log():
    return Log()


# ------------------------------------------------------------------------------------------------------------- deferral


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_nothing_runs_before_the_host_waits(schedule, log):
    device = emulated(schedule=schedule)
    fence = device.create_fence()
    device.direct_queue.dispatch(log("kernel"))
    device.direct_queue.signal(fence, 1)
    device.copy_queue.wait(fence, 1)
    device.create_buffer(8)
    device.create_readback_heap(8).read("uint8", (8,))
    assert log.ran == []
    fence.wait(1)
    assert log.ran == ["kernel"]


def test_a_wait_runs_what_it_needs_and_no_more(log):
    device = emulated()
    fence = device.create_fence()
    for value in (1, 2, 3):
        device.direct_queue.dispatch(log(value))
        device.direct_queue.signal(fence, value)
    fence.wait(2)
    assert log.ran == [1, 2]
    fence.wait(1)
    assert log.ran == [1, 2]
    fence.wait(3)
    assert log.ran == [1, 2, 3]


def test_a_kernel_gets_the_bytes_of_the_buffer_that_lives_now_in_the_shape_that_is_asked_for():
    device, seen = emulated(), []
    for value in (1.0, 2.0):
        buffer, host = device.create_buffer(16, "again"), device.create_upload_heap(16, "host")
        host.write(0, floats(*[value] * 4))
        device.direct_queue.copy(buffer, host)
        for _ in range(2):
            view = buffer.view("float32", (2, 2))
            device.direct_queue.dispatch(lambda x: seen.append(x.resize_(4).tolist()), reads=[view])
            device.direct_queue.dispatch(lambda x: seen.append(list(x.shape)), reads=[view])
        device.wait_idle()
        buffer.free()
        host.free()
    assert seen == [[value] * 4 if flat else [2, 2] for value in (1.0, 2.0) for _ in range(2) for flat in (1, 0)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_runs_what_the_awaited_command_waits_for(schedule, log):
    device = emulated(schedule=schedule)
    first, second = device.create_fence(), device.create_fence()
    device.copy_queue.dispatch(log("copy"))
    device.copy_queue.signal(first, 1)
    device.direct_queue.wait(first, 1)
    device.direct_queue.dispatch(log("direct"))
    device.direct_queue.signal(second, 1)
    second.wait(1)
    assert log.ran == ["copy", "direct"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_queue_keeps_its_order(schedule, log):
    device = emulated(schedule=schedule)
    for number in range(6):
        (device.direct_queue, device.copy_queue)[number % 2].dispatch(log(number))
    device.wait_idle()
    assert sorted(log.ran) == list(range(6))
    assert [n for n in log.ran if n % 2] == [1, 3, 5] and [n for n in log.ran if not n % 2] == [0, 2, 4]


def test_closing_runs_what_is_left(log):
    with emulated() as device:
        device.direct_queue.dispatch(log("late"))
        assert log.ran == []
    assert log.ran == ["late"]


# -------------------------------------------------------------------------------------------------------------
# schedules


def interleaving(schedule, log):
    """Three kernels on each queue, unordered between them, the direct queue's submitted first."""
    device = emulated(schedule=schedule)
    for number in range(3):
        device.direct_queue.dispatch(log(f"direct {number}"))
        device.copy_queue.dispatch(log(f"copy {number}"))
    fence = device.create_fence()
    device.direct_queue.signal(fence, 1)
    other = device.create_fence()
    device.copy_queue.signal(other, 1)
    device.copy_queue.wait(fence, 1)
    last = device.create_fence()
    device.copy_queue.signal(last, 1)
    last.wait(1)
    return log.ran


def test_copies_first_runs_copy_queues_as_far_as_they_go(log):
    assert interleaving("copies_first", log) == [f"{queue} {n}" for queue in ("copy", "direct") for n in range(3)]


def test_copies_last_runs_copy_queues_when_nothing_else_can_go_on(log):
    assert interleaving("copies_last", log) == [f"{queue} {n}" for queue in ("direct", "copy") for n in range(3)]


def test_timed_runs_in_the_order_of_the_virtual_clock(log):
    assert interleaving("timed", log) == [f"{queue} {n}" for n in range(3) for queue in ("direct", "copy")]


def test_a_seed_names_one_order_and_seeds_differ(log):
    orders = {seed: tuple(interleaving(f"random({seed})", Log())) for seed in range(8)}
    assert orders[3] == tuple(interleaving("random(3)", Log()))
    assert interleaving("random", Log()) == interleaving("random(0)", Log())
    assert len(set(orders.values())) > 2


@pytest.mark.parametrize(
    "name", ["", "Timed", "random()", "random(--1)", "random(x)", "random(²)", "random(1", "copies"]
)
def test_an_unknown_schedule_is_refused(name):
    with pytest.raises(ValueError, match="timed, copies_first, copies_last"):
        EmulatedDevice(schedule=name)


def test_a_negative_seed_is_a_seed():
    steps = [Step("direct", "direct", False, 0, 0.0)] * 4
    assert open_schedule("random(-7)").pick(steps) in range(4)


# ----------------------------------------------------------------------------------------------------------------
# poison


def test_memory_can_be_poisoned_without_looking_for_hazards():
    device = EmulatedDevice(check=False, poison=True)
    buffer, back = device.create_buffer(4), device.create_readback_heap(4)
    device.direct_queue.copy(back, buffer)
    device.copy_queue.copy(back, buffer)
    device.wait_idle()
    assert math.isnan(back.read("float32", (1,)).item())
    assert not device.hazards and device.findings().hazards
    assert EmulatedDevice().poison and not EmulatedDevice(check=False).poison


def test_the_bytes_of_a_copy_are_nan_between_its_begin_and_its_end():
    """A reader that does not wait sees NaN, not yesterday's plausible weights."""
    device = emulated(schedule="timed")
    size = 4 * 2**20
    up, b, back = device.create_upload_heap(size), device.create_buffer(size), device.create_readback_heap(4)
    up.write(0, floats(*[1.0] * (size // 4)))
    arrived, done = device.create_fence(), device.create_fence()
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(arrived, 1)
    device.direct_queue.wait(arrived, 1)
    device.copy_queue.copy(b, up)
    device.direct_queue.copy(back, b.span(0, 4))
    device.direct_queue.signal(done, 1)
    done.wait(1)
    assert math.isnan(back.read("float32", (1,)).item())


def test_freed_memory_is_nan_for_a_kernel_that_comes_too_late():
    device = emulated()
    up, b, back = device.create_upload_heap(4), device.create_buffer(4), device.create_readback_heap(4)
    up.write(0, floats(1))
    device.copy_queue.copy(b, up)
    device.wait_idle()
    device.direct_queue.copy(back, b)
    b.free()
    device.wait_idle()
    assert math.isnan(back.read("float32", (1,)).item())
    assert [hazard.kind for hazard in device.hazards] == ["use-after-free"]


def test_without_checks_memory_is_not_filled():
    device = emulated(check=False, schedule="copies_last")
    up, b, back = device.create_upload_heap(4), device.create_buffer(4), device.create_readback_heap(4)
    up.write(0, floats(1))
    device.copy_queue.copy(b, up)
    device.wait_idle()
    device.direct_queue.copy(back, b)
    b.free()
    device.wait_idle()
    assert back.read("float32", (1,)).tolist() == [1]


# ---------------------------------------------------------------------------------------------------- the same bytes
# or not


@pytest.mark.parametrize("edge", ["arrived", "consumed", "done"])
def test_a_dropped_wait_shows_under_some_schedule_and_is_reported_under_all(edge):
    shown = 0
    kinds = {"arrived": "read-after-write", "consumed": "write-after-read", "done": "host-read"}
    reports = set()
    for schedule in SCHEDULES:
        device = emulated(schedule=schedule)
        ring = Ring(device, 6, 2, without=edge)
        shown += ring.run() != ring.expected()
        reports.add(tuple(hazard.report() for hazard in device.hazards))
        assert kinds[edge] in {hazard.kind for hazard in device.hazards}
    assert shown >= 1
    assert len(reports) == 1


@given(layers=st.integers(1, 8), pool=st.integers(1, 4), seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_right_fences_mean_the_same_bytes_in_any_order(layers, pool, seed):
    with emulated(schedule=f"random({seed})") as device:
        ring = Ring(device, layers, pool, width=4)
        assert ring.run() == ring.expected()
    assert not device.findings()


def test_kernels_run_on_one_thread_and_the_programs_threads_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []
        device = emulated()
        device.direct_queue.dispatch(lambda: seen.append((torch.get_num_threads(), torch.is_inference_mode_enabled())))
        device.wait_idle()
        assert seen == [(1, True)] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_buffers_start_at_multiples_of_256_bytes():
    device = emulated()
    for size in (1, 3, 257, 1000):
        device.create_buffer(size)
        device.create_upload_heap(size)
    assert all(memory.data_ptr() % 256 == 0 for memory in device._memory.values())


def test_a_host_read_is_recorded_with_the_digest_of_its_bytes():
    device = emulated()
    back = device.create_readback_heap(4)
    back.read("uint8", (4,))
    back.read("uint8", (2,))
    first, second = device.stream.records[1:]
    assert len(first.digest) == 32 and first.digest != second.digest


def test_a_host_wait_is_recorded_even_if_it_need_not_wait():
    device = emulated()
    fence = device.create_fence()
    device.direct_queue.signal(fence, 1)
    fence.wait(1)
    fence.wait(1)
    assert sum(isinstance(record, HostWait) for record in device.stream) == 2


def test_the_order_names_each_record_of_the_queues_once_where_it_was_done() -> None:
    orders = {}
    for schedule in ("copies_first", "copies_last"):
        device = EmulatedDevice(schedule=schedule)
        staging, buffer, other = (
            device.create_upload_heap(256, "staging"),
            device.create_buffer(256, "buffer"),
            device.create_buffer(256, "other"),
        )
        staging.write(0, bytes(256))
        device.direct_queue.copy(other, staging)
        device.copy_queue.copy(buffer, staging)
        assert device.order == (), "nothing runs before the host waits"
        device.wait_idle()
        copies = [n for n, record in enumerate(device.stream) if isinstance(record, Copy)]
        assert len(set(device.order)) == len(device.order)
        orders[schedule] = [n - copies[0] for n in device.order if n in copies]
    assert orders == {"copies_first": [1, 0], "copies_last": [0, 1]}
