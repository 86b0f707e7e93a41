"""The page pool: what each verb does, what it refuses, and which waits it cannot do without."""

from __future__ import annotations

import pytest
import torch

from tests.mutants import Statement, statements, without
from tests.page_edges import everything, filled, small
from tests.pool_programs import PAGE, Fault, FaultyDevice, Witness, kernels
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import Copy, Wait
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.paging import transfers
from xinfer_lab.paging.errors import HostPoolFull, PageError, PoolFull
from xinfer_lab.paging.extent import PAGE_BYTES, Extent, PageState
from xinfer_lab.paging.pool import HybridMemoryPool

DEVICES = [
    pytest.param(lambda: EmulatedDevice(kernels=kernels(), schedule="random(4)"), id="emulated"),
    pytest.param(
        lambda: CudaDevice(kernels=kernels(), check=True, on_hazard="collect"), id="cuda", marks=pytest.mark.cuda
    ),
]  # fmt: skip


def emulated(schedule: str = "copies_last") -> FaultyDevice:
    return FaultyDevice(kernels=kernels(), schedule=schedule)


def use(pool: HybridMemoryPool, witness: Witness, extent: Extent, expected: int) -> None:
    pool.acquire(extent)
    witness.peek(pool, extent, bytes([expected]) * extent.nbytes)
    pool.release(extent)


# What it does


@pytest.mark.parametrize("open_device", DEVICES)
def test_pages_come_go_and_come_back_with_what_was_written(open_device):
    with open_device() as device:
        pool, witness = small(device), Witness(device)
        one, two, three = filled(pool, 3)
        for extent, number in ((one, 1), (two, 2), (three, 3), (one, 1)):
            use(pool, witness, extent, number)
        pool.acquire(two, write=True)
        witness.stamp(pool, two, 77)
        pool.release(two)
        for extent, number in ((three, 3), (one, 1), (three, 3), (two, 77)):
            use(pool, witness, extent, number)
        witness.check()
        assert pool.read(two).tolist() == [77] * PAGE
        assert not device.hazards
        assert not device.state_faults
        pool.close()


def test_states_as_a_page_goes_through_them():
    device = emulated()
    pool, witness = small(device, frames=1), Witness(device)
    one, two = filled(pool, 2)
    assert pool.state(one) is PageState.IN_HOST
    assert pool.prefetch(one)
    assert pool.state(one) is PageState.MIGRATING
    pool.acquire(one, write=True)
    assert pool.state(one) is PageState.IN_DEVICE
    witness.stamp(pool, one, 9)
    pool.release(one)
    pool.acquire(two)
    assert pool.state(one) is PageState.MIGRATING, "it is on its way home"
    pool.settle(one)
    assert pool.state(one) is PageState.IN_HOST
    pool.release(two)
    pool.evict(two)
    assert pool.state(two) is PageState.IN_HOST, "nobody wrote it, so nothing has to be copied"
    assert pool.read(one).tolist() == [9] * PAGE


def test_where_a_page_is_there_already_nothing_is_submitted():
    device = emulated()
    pool = small(device)
    one, two = filled(pool, 2)
    pool.acquire(one, two)
    pool.release(one, two)
    before = len(device.stream)
    pool.acquire(one)
    pool.acquire(one, two)
    assert len(device.stream) == before
    assert pool.prefetch(one, two)
    assert len(device.stream) == before


def test_acquiring_never_blocks_the_host():
    device = emulated()
    pool, witness = small(device), Witness(device)
    extents = filled(pool, 5)
    before = len(device.stream)
    for _ in range(3):
        for extent in extents:
            pool.acquire(extent, write=True)
            witness.stamp(pool, extent, 5)
            pool.release(extent)
    assert not [record for record in device.stream.records[before:] if record.op.startswith("host")]


def test_statistics_say_how_pages_were_found():
    device = emulated()
    pool = small(device, policy="lru")
    one, two, three = filled(pool, 3)
    new = pool.create(PAGE, "new")
    pool.prefetch(one)
    for extents, write in (((one,), False), ((one, two), True), ((three,), False), ((new,), True)):
        pool.acquire(*extents, write=write)
        pool.release(*extents)
    seen = pool.statistics()
    assert (seen.hits, seen.late, seen.misses, seen.fresh, seen.prefetches) == (1, 1, 2, 1, 1)
    assert (seen.evictions, seen.write_backs, seen.frames, seen.free_frames, seen.dirty_frames) == (2, 2, 2, 0, 1)
    assert (seen.bytes_to_device, seen.bytes_to_host) == (3 * PAGE, 2 * PAGE)
    assert (seen.acquisitions, seen.hit_rate) == (5, 0.25)
    with pytest.raises(AttributeError):
        seen.hits = 7


def test_a_page_without_contents_is_not_fetched():
    device = emulated()
    pool, witness = small(device), Witness(device)
    new = pool.create(PAGE)
    assert pool.prefetch(new)
    pool.acquire(new, write=True)
    witness.stamp(pool, new, 3)
    pool.release(new)
    assert not [record for record in device.stream if isinstance(record, Copy)]
    assert pool.read(new).tolist() == [3] * PAGE


def test_an_extent_lies_in_neighbouring_frames_and_is_used_as_one_tensor():
    device = emulated()
    pool, witness = small(device, frames=4), Witness(device)
    one, two, large = *filled(pool, 2), pool.create(2 * PAGE + 100, "large")
    pool.fill(large, bytes(range(256)) * 4 + bytes(100))
    assert large.pages == 3
    for extent in (one, two):
        use(pool, witness, extent, 1 if extent is one else 2)
    pool.acquire(large)
    frames = pool.table.entry(large).frames
    assert list(frames) == list(range(frames[0], frames[0] + 3))
    witness.peek(pool, large, bytes(range(256)) * 4 + bytes(100))
    assert pool.view(large, "float32", (25,), 2 * PAGE).offset == frames[2] * PAGE
    witness.check()


def test_only_those_pages_leave_that_lie_where_room_is_made():
    device = emulated()
    pool = small(device, frames=5, pages=16, policy="lru")
    ones = filled(pool, 5)
    large = pool.create(2 * PAGE, "large")
    pool.fill(large, bytes(2 * PAGE))
    # From the far end: p1 lies in frame 4, p5 in frame 0. Longest unused are p3, then p1, then p2.
    for number in (3, 1, 2, 5, 4):
        pool.acquire(ones[number - 1])
    pool.release(*ones)
    assert [pool.table.page_in(frame) for frame in range(5)] == [ones[n - 1].first for n in (4, 5, 2, 1, 3)]
    pool.acquire(large)
    assert [extent.name for extent in ones if pool.state(extent) is PageState.IN_HOST] == ["p1", "p3"]


def test_single_pages_leave_long_gaps():
    pool = small(emulated(), frames=6, pages=16)
    one, large = filled(pool, 1)[0], pool.create(4 * PAGE)
    pool.fill(large, bytes(4 * PAGE))
    pool.acquire(one)
    pool.acquire(large)
    assert (pool.table.entry(one).frame, pool.table.entry(large).frame) == (5, 0)


def test_write_back_ahead_of_eviction_leaves_the_page_there_and_clean():
    device = emulated()
    pool, witness = small(device), Witness(device)
    (one,) = filled(pool, 1)
    pool.acquire(one, write=True)
    witness.stamp(pool, one, 40)
    pool.release(one)
    pool.write_back(one)
    assert pool.state(one) is PageState.IN_DEVICE
    before = len(device.stream)
    pool.evict(one)
    pool.write_back(one)
    assert len(device.stream) == before
    assert pool.read(one).tolist() == [40] * PAGE


def test_both_directions_of_the_link_are_used_at_once():
    device = SimulatedDevice(GPU_SPECS["h200"], kernels=kernels())
    pool, witness = HybridMemoryPool(device, frames=4, pages=64), Witness(device, 2**23)
    extents = [pool.create(PAGE_BYTES) for _ in range(48)]
    for extent in extents:
        pool.acquire(extent, write=True)
        witness.stamp(pool, extent, 1)
        pool.release(extent)
    device.wait_idle()
    start = device.now
    for extent in extents:
        pool.acquire(extent, write=True)
        witness.stamp(pool, extent, 1)
        pool.release(extent)
    witness.check()
    device.wait_idle()
    # 48 pages each way; one way after the other would take twice as long as either.
    one_way = 48 * device.spec.copy_time(PAGE_BYTES)
    assert one_way < device.now - start < 1.1 * one_way


def test_a_simulated_device_runs_a_pool_of_full_size():
    device = SimulatedDevice(GPU_SPECS["rtx4090"], kernels=kernels())
    pool = HybridMemoryPool(device, frames=8192, pages=32768, policy="lru")
    assert device.memory.use().used == 16 * 2**30
    assert device.pinned_bytes == 64 * 2**30
    extents = [pool.create(400 * 2**20) for _ in range(60)]
    assert all(extent.pages == 200 for extent in extents)
    for extent in extents:
        pool.acquire(extent, write=True)
        pool.release(extent)
    assert pool.statistics().evictions == 60 - 8192 // 200


# Prefetching


def test_prefetching_gives_up_no_page_that_is_acquired_or_on_its_way():
    pool = small(emulated())
    one, two, three = filled(pool, 3)
    assert pool.prefetch(one, two, one)
    assert not pool.prefetch(three)
    assert pool.statistics().declined == 1
    pool.acquire(one)
    assert not pool.prefetch(three)
    pool.acquire(two)
    pool.release(two)
    assert pool.prefetch(three)
    assert pool.state(two) is PageState.IN_HOST


def test_a_page_that_is_needed_now_may_take_the_place_of_one_that_was_fetched_ahead():
    device = emulated()
    pool, witness = small(device), Witness(device)
    one, two, three = filled(pool, 3)
    pool.prefetch(one, two)
    use(pool, witness, three, 3)
    use(pool, witness, one, 1)
    use(pool, witness, two, 2)
    witness.check()
    assert not device.hazards


# What it refuses


def test_a_pool_full_of_acquired_pages_says_who_holds_it():
    pool = small(emulated())
    one, two, three = filled(pool, 3)
    pool.acquire(one, two)
    with pytest.raises(
        PoolFull, match=r"'p3' needs 1 neighbouring frames of 2, of which 2 are acquired \('p1', 'p2'\)"
    ):
        pool.acquire(three)
    pool.release(one)
    pool.acquire(three)


def test_all_or_none_are_acquired():
    pool = small(emulated())
    one, two, three = filled(pool, 3)
    with pytest.raises(PoolFull):
        pool.acquire(one, two, three)
    assert pool.statistics().pinned_frames == 0
    pool.acquire(two, three)


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda pool, page: pool.release(page), r"'p1' is not acquired \(IN_HOST\): acquire it first"),
        (lambda pool, page: pool.view(page, "uint8", (PAGE,)), "acquire it first"),
        (lambda pool, page: (pool.prefetch(page), pool.view(page, "uint8", (1,))), r"not acquired \(MIGRATING\)"),
        (lambda pool, page: (pool.acquire(page), pool.evict(page)), "acquired and cannot be evicted: release it first"),
        (lambda pool, page: (pool.acquire(page), pool.destroy(page)), "acquired and cannot be destroyed"),
        (lambda pool, page: (pool.acquire(page), pool.read(page)), "acquired and cannot be read by the host"),
        (lambda pool, page: (pool.acquire(page), pool.fill(page, b"x")), "on the device, where this would change noth"),
        (lambda pool, page: (pool.acquire(page), pool.view(page, "uint8", (9,), PAGE - 8)), "9 bytes at 504 do not"),
        (lambda pool, page: pool.fill(page, bytes(9), PAGE - 8), "9 bytes at 504 do not lie in 'p1'"),
        (lambda pool, page: pool.acquire(pool.create(PAGE, "new")), "'new' has no contents yet: fill it"),
        (lambda pool, page: pool.read(pool.create(PAGE, "new")), "'new' has no contents yet"),
        (lambda pool, page: (pool.destroy(page), pool.acquire(page)), "'p1' is not in this pool: it was destroyed"),
        (lambda pool, page: small(pool.device, name="other").acquire(page), "or another pool created it"),
    ],
)  # fmt: skip
def test_an_order_that_is_never_right_is_refused_by_name(misuse, message):
    pool = small(emulated())
    (page,) = filled(pool, 1)
    with pytest.raises(PageError, match=message):
        misuse(pool, page)
    pool.table.check()


def test_sizes_that_cannot_be():
    device = emulated()
    with pytest.raises(ValueError, match="multiple of 256 bytes, not 1000"):
        HybridMemoryPool(device, frames=1, pages=1, page_bytes=1000)
    with pytest.raises(ValueError, match="at least one frame and one page"):
        HybridMemoryPool(device, frames=0, pages=1)
    with pytest.raises(ValueError, match="no eviction policy 'fifo'; choose one of clock, lru, belady"):
        small(device, policy="fifo")
    pool = small(device, pages=3)
    with pytest.raises(PoolFull, match="take 3 neighbouring frames, and this pool has 2"):
        pool.create(2 * PAGE + 1)
    pool.create(2 * PAGE)
    with pytest.raises(HostPoolFull, match="take 2 neighbouring pages, and 1 of the 3 pages"):
        pool.create(PAGE + 1)
    with pytest.raises(ValueError, match="at least one byte"):
        pool.create(0)


def test_a_pool_that_does_not_fit_leaves_nothing_behind():
    device = EmulatedDevice(memory=10 * PAGE)
    with pytest.raises(OutOfDeviceMemory):
        small(device, frames=11)
    assert device.memory.use().used == 0
    assert device.pinned_bytes == 0
    small(device, frames=10).close()
    assert device.memory.use().used == 0
    assert device.pinned_bytes == 0


# Faults


@pytest.mark.parametrize("countdown", range(12))
def test_a_fault_anywhere_in_a_transfer_loses_nothing(countdown):
    device = emulated("random(3)")
    pool, witness = small(device), Witness(device)
    pages = filled(pool, 4)
    values = {page: number for number, page in enumerate(pages, 1)}
    for page in pages[:2]:
        pool.acquire(page, write=True)
        witness.stamp(pool, page, values.setdefault(page, 0) + 100)
        values[page] += 100
        pool.release(page)
    device.countdown = countdown
    faults = 0
    for page in (*pages[2:], *pages):
        for step in (pool.acquire, lambda p: witness.peek(pool, p, bytes([values[p]]) * PAGE), pool.release):
            try:
                step(page)
            except Fault:
                faults += 1
                pool.table.check()
                step(page)
        pool.table.check()
    witness.check()
    assert faults <= 1
    assert [pool.read(page).tolist() for page in pages] == [[values[page]] * PAGE for page in pages]
    assert not device.hazards, device.hazards[0].report()


# The waits


WAITS = [found for found in statements(transfers) if found.verb in ("hold", "block")]


def test_the_program_itself_has_no_hazard():
    device = emulated()
    everything(device)
    assert not device.hazards, device.hazards[0].report()
    assert not device.state_faults
    assert len(WAITS) == 10


@pytest.mark.parametrize("wait", WAITS, ids=str)
def test_each_wait_that_is_left_out_is_found_with_its_line(wait: Statement):
    device = emulated()
    with without(wait):
        everything(device)
    assert device.hazards
    told = "\n".join(hazard.report() for hazard in device.hazards)
    assert "transfers.py:" in told or "pool.py:" in told


@pytest.mark.parametrize(
    ("function", "text", "kind", "words"),
    [
        ("bring", "self.saved.hold", "write-after-read", ("copy on the write back queue",)),
        ("before_reading", "self.arrived.hold", "read-after-write", ("copy on the copy queue", "peek p1")),
        ("bring", "self.done.hold", "write-after-read", ("copy on the copy queue", "peek p1")),
    ],
    ids=["evict before the write-back is done", "read while migrating", "reuse before release"],
)
def test_a_wrong_order_is_reported_with_both_lines(function, text, kind, words):
    device = emulated()
    (wait,) = [found for found in WAITS if found.function == function and found.text.startswith(text)]
    with without(wait):
        pool, witness = small(device, frames=1), Witness(device)
        pages = filled(pool, 3)
        dirty = text == "self.saved.hold"
        for number, page in enumerate(pages, 1):
            pool.acquire(page, write=dirty)
            witness.stamp(pool, page, 5) if dirty else witness.peek(pool, page, bytes([number]) * PAGE)
            pool.release(page)
    found = [hazard for hazard in device.hazards if hazard.kind == kind]
    assert found
    report = found[0].report()
    for word in (*words, "transfers.py:", "to wait for pool."):
        assert word in report


# The third queue, and the heap that goes both ways


def test_the_write_back_queue_is_made_once_and_only_where_it_is_asked_for():
    device = EmulatedDevice()
    assert list(device.queues) == ["direct", "copy"]
    queue = device.write_back_queue
    assert queue is device.write_back_queue is device.queues[WRITE_BACK]
    assert queue.kind == "copy"


def test_waits_are_not_repeated():
    device = emulated()
    pool = small(device, frames=4)
    pages = filled(pool, 4)
    pool.prefetch(*pages)
    pool.acquire(*pages)
    assert len([record for record in device.stream if isinstance(record, Wait)]) == 1


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_host_heap_is_written_and_read_by_the_host_and_by_queues(open_device):
    with open_device() as device:
        heap = device.create_host_heap(512, "both")
        there = device.create_buffer(256, "there")
        heap.write(0, bytes(range(256)))
        device.direct_queue.copy(there, heap.span(0, 256))
        fence = device.create_fence()
        device.direct_queue.signal(fence, 1)
        device.write_back_queue.wait(fence, 1)
        device.write_back_queue.copy(heap.span(256, 256), there)
        back = device.create_fence()
        device.write_back_queue.signal(back, 1)
        back.wait(1)
        assert heap.read("uint8", (256,), 256).tolist() == list(range(256))
        assert not device.hazards
        assert not device.state_faults
        assert device.pinned_bytes > 0
        assert device.memory.use().used >= 256


@pytest.mark.cuda
def test_a_host_heap_is_pinned():
    with CudaDevice() as device:
        heap = device.create_host_heap(PAGE_BYTES)
        assert device._memory[heap.name].is_pinned()


@pytest.mark.cuda
@pytest.mark.parametrize("check", [False, True])
def test_random_uses_on_a_gpu_see_what_was_written(check):
    generator = torch.Generator().manual_seed(5)
    with CudaDevice(kernels=kernels(), check=check) as device:
        pool = HybridMemoryPool(device, frames=6, pages=40, page_bytes=2**16, policy="clock")
        witness = Witness(device, 2**24)
        extents = [
            pool.create(int(size) * 1000, f"e{n}")
            for n, size in enumerate(torch.randint(1, 180, (12,), generator=generator))
        ]
        values = {}
        for extent in extents:
            values[extent] = 1
            pool.fill(extent, b"\x01" * extent.nbytes)
        for step in range(400):
            extent = extents[int(torch.randint(0, 12, (1,), generator=generator))]
            ahead = extents[int(torch.randint(0, 12, (1,), generator=generator))]
            write = bool(torch.rand(1, generator=generator) < 0.5)
            pool.prefetch(ahead)
            pool.acquire(extent, write=write)
            witness.peek(pool, extent, bytes([values[extent]]) * extent.nbytes)
            if write:
                values[extent] = step % 250 + 1
                witness.stamp(pool, extent, values[extent])
            pool.release(extent)
        witness.check()
        for extent in extents:
            assert pool.read(extent).unique().tolist() == [values[extent]]
        pool.close()
