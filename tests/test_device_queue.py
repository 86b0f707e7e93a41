"""Command queues and command lists."""

import pytest
import torch

from tests.device_programs import DEVICES, SCHEDULES, Ring, emulated, floats
from xinfer_lab.device.errors import BufferRangeError, FenceError, KernelError, StateError, StreamError
from xinfer_lab.device.records import AssumeCommon, Copy, Dispatch, Signal, Transition
from xinfer_lab.device.replay import replay


@pytest.fixture
def device():
    with emulated() as opened:
        yield opened


@pytest.fixture
def ends(device):
    """An upload heap and a buffer of 64 bytes."""
    return device.create_upload_heap(64, "up"), device.create_buffer(64, "b")


def issued(device):
    """The stream from the first command on, by kind."""
    return [record for record in device.stream if record.op not in ("allocate", "host_write")]


def test_commands_of_a_queue_are_calls_of_their_own(device, ends):
    up, b = ends
    for _ in range(3):
        device.copy_queue.copy(b, up)
    assert [(record.call, record.listed) for record in issued(device)] == [(1, False), (2, False), (3, False)]


def test_every_record_names_the_line_that_issued_it(device, ends):
    up, b = ends
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(device.create_fence(), 1)
    lines = [int(record.where.rpartition(":")[2]) for record in issued(device)]
    assert all(record.where.startswith(__file__) for record in device.stream)
    assert lines[1] - lines[0] == 1 and lines[2] - lines[1] == 1


# -----------------------------------------------------------------------------------------------------------------
# lists


def test_nothing_of_a_list_is_submitted_before_its_block_ends(device, ends):
    up, b = ends
    with device.copy_queue.record("upload") as commands:
        commands.copy(b.span(0, 32), up.span(0, 32))
        commands.copy(b.span(32), up.span(32), label="second half")
        assert issued(device) == [] and len(commands.records) == 2
    assert [(r.call, r.listed, r.label) for r in issued(device)] == [(1, True, "upload"), (1, True, "second half")]


def test_a_signal_inside_a_block_comes_before_the_list(device, ends):
    up, b = ends
    fence = device.create_fence()
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
        device.copy_queue.signal(fence, 1)
    assert [type(record) for record in issued(device)] == [Signal, Copy]


def test_a_signal_inside_a_block_does_not_cover_the_list(device, ends):
    up, b = ends
    fence = device.create_fence()
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
        device.copy_queue.signal(fence, 1)
    device.direct_queue.wait(fence, 1)
    device.direct_queue.dispatch(lambda x: None, reads=[b.view("uint8", (64,))])
    assert [hazard.kind for hazard in device.hazards] == ["read-after-write"]


def test_calls_inside_a_block_are_numbered_before_the_list(device, ends):
    up, b = ends
    other = device.create_buffer(64)
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
        device.copy_queue.copy(other, up)
    assert [record.call for record in issued(device)] == [1, 2]


def test_an_abandoned_list_submits_nothing_and_the_tracker_forgets_it(device, ends):
    up, b = ends
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
    before, state = len(device.stream), b.tracked_state
    with pytest.raises(ZeroDivisionError), device.direct_queue.record() as commands:
        b.assume_common()
        commands.dispatch(lambda x: None, writes=[b.view("uint8", (64,))])
        assert b.tracked_state == "UNORDERED_ACCESS"
        raise ZeroDivisionError
    assert len(device.stream) == before and b.tracked_state == state == "COPY_DEST"
    with device.direct_queue.record() as commands:
        pass


def test_a_freed_buffer_stays_forgotten_when_the_list_is_abandoned(device, ends):
    up, b = ends
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
    device.wait_idle()
    with pytest.raises(ZeroDivisionError), device.direct_queue.record():
        b.free()
        raise ZeroDivisionError
    assert device.create_buffer(64, "b").tracked_state == "COMMON"


def test_a_list_that_cannot_be_taken_is_not_taken_in_part(device, ends):
    up, b = ends
    state = b.tracked_state
    with pytest.raises(BufferRangeError, match="bytes 0 to 64"), device.copy_queue.record() as commands:
        commands.copy(b, up)
        commands.copy(b.span(32, 64), up)
    assert issued(device) == [] and b.tracked_state == state
    device.copy_queue.copy(b, up)
    device.wait_idle()
    assert not device.hazards


def test_an_empty_list_is_no_call(device):
    with device.direct_queue.record():
        pass
    assert issued(device) == [] and device.next_call() == 1


def test_lists_do_not_nest(device, ends):
    up, b = ends
    still_open = pytest.raises(RuntimeError, match="list of the copy queue is still open")
    with still_open, device.copy_queue.record() as commands:
        commands.copy(b, up)
        with device.direct_queue.record():
            pass
    assert issued(device) == []
    with device.direct_queue.record() as commands:
        commands.copy(b, up)
    assert len(issued(device)) == 1


def test_a_list_is_recorded_once_and_only_inside_its_block(device, ends):
    up, b = ends
    commands = device.copy_queue.record()
    with pytest.raises(RuntimeError, match="inside `with"):
        commands.copy(b, up)
    with commands:
        commands.copy(b, up)
    for use in (
        lambda: commands.copy(b, up),
        lambda: commands.dispatch(lambda: None),
        lambda: commands.transition(b, "COMMON", "COPY_DEST"),
    ):
        with pytest.raises(RuntimeError, match="not after its end"):
            use()
    with pytest.raises(RuntimeError, match="recorded once"), commands:
        pass
    assert len(issued(device)) == 1


def test_a_list_has_no_truth_value(device):
    with pytest.raises(TypeError, match="truth value"):
        bool(device.copy_queue.record())


def test_a_list_records_the_barriers_that_it_needs(device, ends):
    up, b = ends
    with device.direct_queue.record() as commands:
        commands.copy(b, up)
        commands.dispatch("fold", total=b.view("float32", (8,)), weight=b.view("float32", (8,), 32))
    transition = issued(device)[1]
    assert isinstance(transition, Transition)
    assert (transition.buffer, transition.before, transition.after) == ("b", "COPY_DEST", "UNORDERED_ACCESS")
    assert transition.call == issued(device)[0].call and transition.where.startswith(__file__)
    device.wait_idle()
    assert not device.hazards and not device.state_faults


def test_a_barrier_of_ones_own_is_tracked_too(device, ends):
    _, b = ends
    with device.direct_queue.record() as commands:
        commands.transition(b, "COMMON", "COPY_DEST")
        assert b.tracked_state == "COPY_DEST"
        with pytest.raises(StateError, match="no resource state"):
            commands.transition(b, "COMMON", "TELEPORT")
        with pytest.raises(TypeError, match="not str"):
            commands.transition("b", "COMMON", "COPY_DEST")
    assert len(issued(device)) == 1


def test_what_is_assumed_inside_a_block_keeps_its_place(device, ends):
    up, b = ends
    with device.direct_queue.record() as commands:
        b.assume_common()
        commands.copy(b, up)
    assert [type(record) for record in issued(device)] == [AssumeCommon, Copy]


# --------------------------------------------------------------------------------------------------------------
# dispatching


def test_operands_are_views(device, ends):
    _, b = ends
    for wrong in (b, b.span(), torch.zeros(4)):
        with pytest.raises(
            TypeError, match=r"operand 'weight' of 'fold' must be a view, as buffer\.view\(dtype, shape\)"
        ):
            device.direct_queue.dispatch("fold", total=b.view("float32", (4,)), weight=wrong)
    assert issued(device) == []


def test_a_registered_kernel_declares_its_accesses_itself(device, ends):
    _, b = ends
    with pytest.raises(TypeError, match="declares what it touches"):
        device.direct_queue.dispatch("fold", reads=[b.view("float32", (4,))])


def test_a_function_takes_tensors_and_nothing_else(device, ends):
    _, b = ends
    with pytest.raises(TypeError, match="not weight"):
        device.direct_queue.dispatch(lambda x: None, weight=b.view("float32", (4,)))
    with pytest.raises(TypeError, match="not scale"):
        device.direct_queue.dispatch(lambda x: None, params={"scale": 2})
    with pytest.raises(TypeError, match="a registered name or a function, not int"):
        device.direct_queue.dispatch(7)


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_function_can_be_dispatched_for_exploring(open_device):
    with open_device() as device:
        up, b, back = device.create_upload_heap(32), device.create_buffer(32), device.create_readback_heap(16)
        fence = device.create_fence()
        up.write(0, floats(1, 2, 3, 4, 0, 0, 0, 0))

        def double(source, target):
            torch.mul(source, 2, out=target)

        device.direct_queue.copy(b, up)
        device.direct_queue.dispatch(double, reads=[b.view("float32", (4,))], writes=[b.view("float32", (4,), 16)])
        with device.direct_queue.record("read") as commands:
            commands.copy(back, b.span(16))
        device.direct_queue.signal(fence, 1)
        fence.wait(1)
        assert back.read("float32", (4,)).tolist() == [2, 4, 6, 8]
        assert not device.hazards


def test_a_stream_with_a_function_is_refused_by_replay(device, ends):
    _, b = ends
    device.direct_queue.dispatch(lambda x: None, writes=[b.view("float32", (4,))])
    twin = emulated()
    with pytest.raises(KernelError, match=r"record 2 dispatches 'closure <lambda>.1'.*Register it as a kernel"):
        replay(device.stream, twin)


def test_a_function_of_the_same_name_is_not_taken_for_it(device, ends):
    _, b = ends
    device.direct_queue.dispatch(lambda x: None, writes=[b.view("float32", (4,))])
    twin = emulated()
    twin.direct_queue.dispatch(lambda x: x.fill_(7), writes=[twin.create_buffer(64, "mine").view("float32", (4,))])
    with pytest.raises(KernelError, match="closure"):
        replay(device.stream, twin)


def test_params_are_kept_as_they_are_now(device, ends):
    _, b = ends
    params = {"scale": 2}
    operands = {"total": b.view("float32", (4,)), "weight": b.view("float32", (4,), 16)}
    device.direct_queue.dispatch("fold", params=params, **operands)
    params["scale"] = 3
    (record,) = issued(device)
    assert isinstance(record, Dispatch) and record.params == {"scale": 2} and record.operands == operands


# ------------------------------------------------------------------------------------------------------------------
# queues


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_device_may_have_more_queues(open_device):
    with open_device() as device:
        third = device.create_queue("readback")
        assert third.kind == "copy" and device.queues["readback"] is third
        up, b, back = device.create_upload_heap(8), device.create_buffer(8), device.create_readback_heap(8)
        arrived, done = device.create_fence(), device.create_fence()
        up.write(0, b"12345678")
        device.copy_queue.copy(b, up)
        device.copy_queue.signal(arrived, 1)
        third.wait(arrived, 1)
        third.copy(back, b)
        third.signal(done, 1)
        done.wait(1)
        assert back.read("uint8", (8,)).numpy().tobytes() == b"12345678"
        assert not device.hazards


def test_a_queue_has_a_name_and_a_kind_of_its_own(device):
    with pytest.raises(StreamError, match="'copy'"):
        device.create_queue("copy")
    # To the hazard checker, the lane called host is the host: its commands would count as done at once.
    with pytest.raises(StreamError, match="'host'"):
        device.create_queue("host")
    with pytest.raises(ValueError, match="'direct' or 'copy', not 'compute'"):
        device.create_queue("more", kind="compute")


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_fence_has_one_signaller(open_device):
    with open_device() as device:
        fence = device.create_fence()
        device.copy_queue.signal(fence, 1)
        with pytest.raises(FenceError, match="two signallers would race"):
            device.direct_queue.signal(fence, 2)
        with pytest.raises(FenceError, match="must be greater"):
            device.copy_queue.signal(fence, 1)


@pytest.mark.parametrize("open_device", DEVICES)
def test_idle_means_that_every_queue_is_done(open_device):
    with open_device() as device:
        up, b, back = device.create_upload_heap(4), device.create_buffer(4), device.create_readback_heap(4)
        up.write(0, floats(3))
        device.copy_queue.copy(b, up)
        device.wait_idle()
        device.direct_queue.copy(back, b)
        device.wait_idle()
        assert back.read("float32", (1,)).tolist() == [3]
        up.free()
        assert not device.hazards


@pytest.mark.parametrize("layers", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("pool", [1, 2, 3, 8])
def test_a_ring_of_slots_gives_the_right_sum_without_a_hazard(layers, pool):
    with emulated(schedule="copies_first") as device:
        ring = Ring(device, layers, pool)
        assert ring.run() == ring.expected()
    assert not device.findings()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_schedule_does_not_show_in_the_result(schedule):
    with emulated(schedule=schedule) as device:
        ring = Ring(device, 7, 3)
        assert ring.run() == ring.expected()
