"""`CudaDevice`: what only a GPU can show. What holds for every device is tested with the emulated one (-m cuda too)."""

import mmap
from itertools import pairwise

import pytest
import torch

from tests.device_programs import Ring, cuda, emulated, floats
from xinfer_lab.device.checker import check_stream
from xinfer_lab.device.cuda import LIBRARY_WORKSPACE
from xinfer_lab.device.errors import HazardError, OutOfDeviceMemory
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.device.records import HostRead
from xinfer_lab.device.replay import replay

pytestmark = pytest.mark.cuda

MIB = 2**20


@pytest.fixture
def allocated():
    """Bytes that torch has handed out on the GPU, now."""

    def now():
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    return now


def digests(device):
    return [record.digest for record in device.stream if isinstance(record, HostRead)]


# ------------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("layers", "pool"), [(7, 3), (6, 2), (5, 1)])
def test_a_gpu_gives_the_bytes_of_the_emulated_device(check, layers, pool):
    results = []
    for device in (cuda(check=check), emulated()):
        with device:
            ring = Ring(device, layers, pool, width=1 << 16)
            results.append(ring.run())
        assert not device.findings()
    assert results[0] == results[1] == ring.expected()


def test_a_stream_of_a_gpu_is_the_stream_of_the_emulated_device_digests_too():
    streams = []
    for device in (cuda(), emulated()):
        with device:
            Ring(device, 6, 2).run()
        streams.append(device.stream)
    assert streams[0].records == streams[1].records
    with emulated() as device:
        replay(streams[0], device)


def test_without_checks_nothing_is_hashed_and_replay_still_compares():
    with cuda(check=False) as device:
        Ring(device, 4, 2).run()
    assert digests(device) == [""]
    with emulated() as reference:
        Ring(reference, 4, 2).run()
    with cuda(check=False) as device:
        replay(reference.stream, device)


def test_the_same_program_gives_the_same_bytes_every_time():
    seen = set()
    for _ in range(5):
        with cuda() as device:
            Ring(device, 7, 3, width=1 << 18).run()
        seen.update(digests(device))
    assert len(seen) == 1


# ------------------------------------------------------------------------------------------------------------- hazards


@pytest.mark.parametrize(("edge", "kind"), [("arrived", "assumed too early"), ("consumed", "write after read"),
                                            ("done", "host read before its fence")])  # fmt: skip
def test_a_dropped_wait_is_reported_before_anything_is_issued(edge, kind):
    device = cuda(on_hazard="raise")
    with device, pytest.raises(HazardError, match=kind) as caught:
        Ring(device, 6, 2, without=edge).run()
    assert str(caught.value).count("device_programs.py:") >= 2
    # What raced was not taken into the stream, and what is in the stream is what was issued.
    assert not check_stream(device.stream, device.kernels)


def test_what_races_is_not_issued():
    with cuda(on_hazard="raise") as device:
        up, b, back = device.create_upload_heap(64), device.create_buffer(64), device.create_readback_heap(64)
        fence = device.create_fence()
        up.write(0, floats(*range(16)))
        device.copy_queue.copy(b, up)
        with pytest.raises(HazardError, match="write after write"):
            device.direct_queue.dispatch(lambda x: x.fill_(7), writes=[b.view("float32", (16,))])
        device.copy_queue.copy(back, b)
        device.copy_queue.signal(fence, 1)
        fence.wait(1)
        assert back.read("float32", (16,)).tolist() == list(range(16))


def test_in_check_mode_a_gpu_raises_unless_it_is_told_to_collect():
    with cuda(check=True, on_hazard="collect") as device:
        Ring(device, 5, 2, without="consumed").run()
    assert {hazard.kind for hazard in device.hazards} == {"write-after-read"}


def test_without_checks_a_race_is_issued_and_found_afterwards():
    with cuda(check=False) as device:
        Ring(device, 5, 2, without="consumed").run()
    assert device.hazards == []
    with pytest.raises(HazardError, match="write after read"):
        device.raise_hazards()


def test_a_kernel_that_fails_leaves_no_record():
    with cuda() as device:
        b = device.create_buffer(64)
        before = len(device.stream)
        with pytest.raises(ArithmeticError):
            device.direct_queue.dispatch("fail", out=b.view("uint8", (8,)))
        assert len(device.stream) == before


# -------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("size", [1, 4096, 4097, 129 * MIB + MIB // 2])
def test_pinned_memory_is_as_large_as_was_asked_for_up_to_a_page(size):
    memory = PinnedMemory(size)
    try:
        assert memory.tensor.numel() == size and memory.tensor.is_pinned()
        assert size <= memory.pinned_bytes < size + mmap.PAGESIZE and memory.pinned_bytes % mmap.PAGESIZE == 0
        assert memory.tensor.data_ptr() % 256 == 0
    finally:
        memory.close()
    memory.close()


def test_pinned_memory_can_be_taken_and_given_back_many_times():
    for _ in range(50):
        PinnedMemory(3 * MIB).close()
    for _ in range(50):
        PinnedMemory(3 * MIB)  # given back by whoever drops it, too
    memory = PinnedMemory(3 * MIB)
    assert memory.tensor.is_pinned()
    memory.close()


def test_heaps_are_pinned_and_buffers_aligned():
    with cuda() as device:
        names = [device.create_upload_heap(1000).name, device.create_readback_heap(1000).name]
        assert all(device._memory[name].is_pinned() for name in names)
        for size in (1, 300, 1000):
            names.append(device.create_buffer(size).name)
        assert all(device._memory[name].data_ptr() % 256 == 0 for name in names)


def test_free_and_close_give_memory_back(allocated):
    cuda().close()  # whatever the libraries keep for good is there now
    before = allocated()
    with cuda() as device:
        first, _second = device.create_buffer(64 * MIB), device.create_buffer(32 * MIB)
        assert allocated() >= before + 96 * MIB
        first.free()
        assert allocated() <= before + 33 * MIB
    assert allocated() <= before


def test_memory_is_given_back_after_an_error_too(allocated):
    cuda().close()
    before = allocated()
    with pytest.raises(KeyError), cuda() as device:
        device.create_buffer(64 * MIB)
        raise KeyError
    assert allocated() <= before


def test_opening_devices_again_and_again_takes_no_more_memory(allocated):
    for _ in range(3):
        with cuda() as device:
            Ring(device, 4, 2).run()
    before = allocated()
    for _ in range(10):
        with cuda() as device:
            Ring(device, 4, 2).run()
    assert allocated() <= before


def test_a_gpu_that_is_full_says_who_holds_what():
    with cuda(memory=None) as device:
        device.create_buffer(MIB, "mine")
        before = device.memory.use(), len(device.stream)
        with pytest.raises(OutOfDeviceMemory, match="huge needs") as caught:
            device.create_buffer(2**43, "huge")
        assert caught.value.holders["mine"] == MIB and caught.value.budget == torch.cuda.mem_get_info()[1]
        assert (device.memory.use(), len(device.stream)) == before
        device.create_buffer(MIB, "huge").free()


def test_what_the_matrix_library_keeps_counts_against_the_budget():
    with cuda() as device:
        kept = device.memory.use().holders.get(LIBRARY_WORKSPACE, 0)
    if kept:
        with pytest.raises(OutOfDeviceMemory, match=LIBRARY_WORKSPACE):
            cuda(memory=kept - 1)
    with cuda(memory=kept + MIB, graphs=False) as device:
        device.create_buffer(MIB)


# ------------------------------------------------------------------------------------------------------------- timeline


def measured_ring(width=1 << 20):
    device = cuda(check=False, measure=True)
    Ring(device, 6, 2, width=width).run()
    device.close()
    return device


def test_a_timeline_is_measured():
    device = measured_ring()
    timeline = device.timeline()
    assert timeline.clock == torch.cuda.get_device_name() and timeline.lanes == ("direct", "copy", "host")
    counts = {kind: sum(event.kind == kind for event in timeline.events) for kind in ("copy", "dispatch")}
    assert counts == {"copy": 8, "dispatch": 6}
    assert all(event.duration > 0 for event in timeline.events)
    assert timeline.peak_memory == device.memory.use().peak > 0


def test_a_measured_timeline_respects_queues_and_fences():
    timeline = measured_ring().timeline()
    tick = 2e-6  # of the events' clocks
    for lane in ("direct", "copy"):
        events = [event for event in timeline.events if event.lane == lane]
        assert all(two.start >= one.end - tick for one, two in pairwise(events))
    assert len(timeline.flows) == 6 + 4
    for flow in timeline.flows:
        before = [e for e in timeline.events if e.lane == flow.signal_lane and e.record < flow.signal]
        after = [e for e in timeline.events if e.lane == flow.wait_lane and e.record > flow.wait]
        assert all(e.end <= flow.signal_time + tick for e in before)
        assert all(e.start >= flow.signal_time - tick for e in after)


def test_a_queue_stands_still_from_its_wait_to_the_signal():
    size = 2**28
    with cuda(check=False, measure=True) as device:
        heap, buffer = device.create_upload_heap(size), device.create_buffer(size)
        other, fence = device.create_buffer(size), device.create_fence("arrived")
        device.copy_queue.copy(buffer, heap)
        device.copy_queue.signal(fence, 1)
        device.direct_queue.wait(fence, 1)
        device.direct_queue.copy(other, buffer)
        device.direct_queue.wait(fence, 1)
        device.wait_idle()
        timeline = device.timeline()
    upload, waited, copied = timeline.events
    assert [event.kind for event in timeline.events] == ["copy", "wait", "copy"]
    assert [event.lane for event in timeline.events] == ["copy", "direct", "direct"]
    # 256 MiB take milliseconds, and the host submits the wait in a fraction of one.
    assert 0.5 * upload.duration < waited.duration == timeline.busy("direct", "wait")
    first, second = timeline.flows
    assert waited.end == first.signal_time == first.wait_time
    # The second wait found the signal there: it is a flow, and the queue stood still for nothing.
    assert second.signal_time == first.signal_time < copied.end - 2e-6 <= second.wait_time


def test_a_device_that_was_not_asked_to_measure_says_so():
    with cuda() as device, pytest.raises(RuntimeError, match="measure=True"):
        device.timeline()


def test_a_wait_for_0_is_measured_as_no_flow():
    with cuda(measure=True) as device:
        up, b, fence = device.create_upload_heap(4), device.create_buffer(4), device.create_fence()
        up.write(0, floats(1))
        device.direct_queue.wait(fence, 0)
        device.copy_queue.copy(b, up)
        device.copy_queue.signal(fence, 1)
        fence.wait(1)
        assert device.timeline().flows == ()
