"""`Device.submit` takes a command or leaves everything as it was; checks and what they raise."""

import pytest

from tests.device_programs import DEVICES, Ring, emulated, floats, kernels
from xinfer_lab.device.checker import StreamChecker, check_stream
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError, DeviceError, HazardError, OutOfDeviceMemory, OutOfHostMemory
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import Allocate, Copy, Span
from xinfer_lab.device.simulated import SimulatedDevice


def racing(device):
    """A copy on the copy queue, and the arguments of a copy on the direct queue that races with it."""
    up, b = device.create_upload_heap(64, "up"), device.create_buffer(64, "b")
    device.copy_queue.copy(b, up)
    return b, up


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_race_is_refused_before_it_is_issued_and_the_device_goes_on(open_device):
    with open_device(check=True, on_hazard="raise") as device:
        b, up = racing(device)
        fence, before = device.create_fence(), len(device.stream)
        with pytest.raises(HazardError, match="write after write"):
            device.direct_queue.copy(b, up)
        assert len(device.stream) == before and not check_stream(device.stream, device.kernels)
        # The same command again, now ordered: what was refused left nothing with the checker.
        device.copy_queue.signal(fence, 1)
        device.direct_queue.wait(fence, 1)
        device.direct_queue.copy(b, up)
        device.wait_idle()
        b.free()
        assert not check_stream(device.stream, device.kernels)


@pytest.mark.parametrize("open_device", DEVICES)
def test_one_race_in_a_list_keeps_the_whole_list_back(open_device):
    with open_device(check=True, on_hazard="raise") as device:
        b, up = racing(device)
        other, before = device.create_buffer(64, "other"), len(device.stream)
        state = device.tracker.state("b")
        with pytest.raises(HazardError), device.direct_queue.record() as commands:
            commands.copy(other, up)
            commands.copy(b, up)
        assert len(device.stream) == before
        assert (device.tracker.state("other"), device.tracker.state("b")) == ("COMMON", state)


def test_a_refused_free_takes_nothing_away():
    device = emulated(on_hazard="raise")
    b, up = racing(device)
    before = device.memory.use()
    with pytest.raises(HazardError, match="gives b back"):
        b.free()
    assert device.memory.use() == before and device.heap_of("b") == "default"
    device.wait_idle()
    b.free()
    up.free()
    assert device.memory.use().used == 0


def test_a_refused_allocation_can_be_repeated():
    device = emulated(memory=100)
    first = device.create_buffer(90, "first")
    with pytest.raises(OutOfDeviceMemory):
        device.create_buffer(20, "second")
    first.free()
    device.create_buffer(20, "second")
    assert [record.op for record in device.stream] == ["allocate", "free", "allocate"]


def test_a_machine_without_room_for_a_buffer_says_so():
    device = emulated()
    device.create_buffer(2**20, "held")
    with pytest.raises(OutOfHostMemory, match=r"'huge' needs 4096\.00 TiB .* the 1\.00 MiB of other buffers"):
        device.create_upload_heap(2**52, "huge")
    assert len(device.stream) == 1 and device.timeline().events == ()
    device.create_upload_heap(16, "huge").free()


def test_a_failing_source_leaves_nothing():
    class Broken:
        def nbytes(self, name):
            return 8 if name == "w" else None

        def bytes(self, name):
            raise OSError("the disk is gone")

    device = emulated()
    device.sources.mount(Broken())
    heap = device.create_upload_heap(8)
    with pytest.raises(OSError, match="disk"):
        heap.write(0, "w")
    assert len(device.stream) == 1 and device.timeline().events == ()
    heap.write(0, b"12345678")
    device.copy_queue.copy(device.create_buffer(8), heap)
    device.wait_idle()
    assert not device.hazards


def test_a_failing_kernel_says_where_it_was_dispatched():
    device = emulated()
    b, fence = device.create_buffer(8), device.create_fence()
    device.direct_queue.dispatch("fail", out=b.view("uint8", (8,)))
    device.direct_queue.signal(fence, 1)
    with pytest.raises(ArithmeticError) as caught:
        fence.wait(1)
    assert any("direct queue" in note and "test_device_submit.py" in note for note in caught.value.__notes__)


def test_a_wait_that_failed_is_not_in_the_stream_and_can_be_repeated():
    device = emulated()
    b, fence = device.create_buffer(8), device.create_fence()
    device.direct_queue.dispatch("fail", out=b.view("uint8", (8,)))
    device.direct_queue.signal(fence, 1)
    before = len(device.stream)
    with pytest.raises(ArithmeticError):
        fence.wait(1)
    assert len(device.stream) == before
    fence.wait(1)
    b.free()
    assert not device.hazards


def test_memory_is_given_back_when_closing_fails():
    device = emulated()
    device.direct_queue.dispatch("fail", out=device.create_buffer(8).view("uint8", (8,)))
    with pytest.raises(ArithmeticError):
        device.close()
    assert device.memory.use().used == 0
    device.close()


def test_leaving_by_an_exception_waits_for_nothing():
    with pytest.raises(KeyError, match="mine"), emulated() as device:
        device.direct_queue.dispatch("fail", out=device.create_buffer(8).view("uint8", (8,)))
        raise KeyError("mine")
    assert device.memory.use().used == 0


def test_hazards_are_collected_by_default():
    device = emulated()
    b, up = racing(device)
    device.direct_queue.copy(b, up)
    assert [(hazard.kind, hazard.first, hazard.second) for hazard in device.hazards] == [("write-after-write", 2, 3)]
    with pytest.raises(HazardError, match="write after write"):
        device.raise_hazards()


def test_a_device_that_does_not_check_can_still_say_what_is_wrong():
    device = emulated(check=False)
    b, up = racing(device)
    device.direct_queue.copy(b, up)
    assert device.hazards == []
    assert device.findings().hazards
    with pytest.raises(HazardError, match="write after write"):
        device.raise_hazards()


def test_nothing_to_report_raises_nothing():
    with emulated() as device:
        Ring(device).run()
    device.raise_hazards()


def test_on_hazard_is_one_of_two_words():
    with pytest.raises(ValueError, match="'collect' or 'raise', not 'warn'"):
        emulated(on_hazard="warn")


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("on_hazard", ["collect", "raise"])
def test_a_sound_program_makes_the_same_stream_however_it_is_looked_at(check, on_hazard):
    devices = [
        emulated(check=check, on_hazard=on_hazard),
        emulated(),
    ]
    for device in devices:
        with device:
            Ring(device).run()
    assert devices[0].stream.records == devices[1].stream.records


def test_the_checker_of_a_device_sees_what_the_stream_says():
    device = emulated()
    Ring(device, without="consumed").run()
    found = StreamChecker(device.kernels).observe(*device.stream)
    assert found.hazards == tuple(device.hazards) != ()
    assert found.state_faults == tuple(device.state_faults)


def test_several_records_at_once_are_one_call():
    device = emulated()
    up, b = device.create_upload_heap(8, "up"), device.create_buffer(8, "b")
    copies = [
        Copy(queue="copy", dst=Span(b.name, at, 4), src=Span(up.name, at, 4), call=1, listed=True) for at in (0, 4)
    ]
    device.submit(*copies)
    assert device.stream.records[2:] == copies
    bad = Copy(queue="copy", dst=Span("b", 0, 8), src=Span("up", 4, 8), call=2)
    with pytest.raises(BufferRangeError):
        device.submit(Copy(queue="copy", dst=Span("b", 0, 4), src=Span("up", 0, 4), call=2), bad)
    assert len(device.stream) == 4


def test_a_new_call_follows_the_calls_that_were_replayed():
    device = emulated()
    up, b = device.create_upload_heap(8, "up"), device.create_buffer(8, "b")
    device.submit(Copy(queue="copy", dst=Span("b", 0, 8), src=Span("up", 0, 8), call=41))
    device.copy_queue.copy(b, up)
    assert device.stream[3].call == 42


def test_freed_names_start_afresh_with_the_tracker():
    device = emulated()
    up, b = device.create_upload_heap(8, "up"), device.create_buffer(8, "b")
    with device.copy_queue.record() as commands:
        commands.copy(b, up)
    device.wait_idle()
    b.free()
    assert device.create_buffer(8, "b").tracked_state == "COMMON"


def test_kernels_of_one_device_are_not_those_of_another():
    table = kernels()
    one, two = EmulatedDevice(kernels=table), EmulatedDevice(kernels=table)
    one.direct_queue.dispatch(lambda: None)
    assert "closure <lambda>.1" in one.kernels and "closure <lambda>.1" not in two.kernels and len(list(table)) == 2


def test_a_long_stream_can_be_simulated_with_checks():
    # Thousands of commands: what a whole generation asks for. Twenty thousand take about a second.
    device = SimulatedDevice(GPU_SPECS["h200"], kernels=kernels())
    Ring(device, layers=600, pool=3).run()
    assert len(device.stream) > 4000 and not device.findings()


def test_every_error_of_a_device_is_a_device_error():
    device = emulated(memory=10)
    for use in (
        lambda: device.create_buffer(11),
        lambda: device.submit(Allocate(buffer="x", size=0, heap="default")),
        lambda: device.direct_queue.dispatch("nothing"),
        lambda: device.create_fence().wait(1),
        lambda: device.sources.whole("w"),
    ):
        with pytest.raises(DeviceError):
            use()


def test_the_host_may_write_what_nobody_reads_any_more():
    with emulated() as device:
        up, b, fence = device.create_upload_heap(4), device.create_buffer(4), device.create_fence()
        for turn in (1, 2, 3):
            up.write(0, floats(turn))
            device.copy_queue.copy(b, up)
            device.copy_queue.signal(fence, turn)
            fence.wait(turn)
    assert not device.findings()
