"""The staging ring: ranges of pinned memory, round and round, none handed out while a copy may still read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import HostWait, HostWrite, Span
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2 import layer_layout
from xinfer_lab.residency.host import PinnedLayers, StagedLayers
from xinfer_lab.residency.staging import StagingRing
from xinfer_lab.residency.weights import SizedWeights


class Bench:
    """A ring on a simulated device, and what its user knows: which ranges are in use, until which fence value."""

    def __init__(self, size: int) -> None:
        self.device = SimulatedDevice(GPU_SPECS["laptop"])
        self.ring = StagingRing(self.device, size)
        self.target = self.device.create_buffer(max(self.ring.size, 1))
        self.fences = [self.device.create_fence() for _ in range(2)]
        self.used: list[tuple[Span, str, int]] = []
        self.fresh: list[Span] = []

    def allocate(self, size: int) -> tuple[Span, list[tuple[str, int]]]:
        """The range handed out, and the (fence, value) of every host wait that it took."""
        first = len(self.device.stream)
        span = self.ring.heap.span(self.ring.allocate(size), size)
        waits = [(r.fence, r.value) for r in self.device.stream.records[first:] if isinstance(r, HostWait)]
        self.fresh.append(span)
        return span, waits

    def submit(self, which: int) -> None:
        """Copy from all ranges handed out since the last call, and announce fence number ``which``."""
        fence = self.fences[which]
        for span in self.fresh:
            self.device.submit(HostWrite(dst=span, source=self.device.sources.put(f"{span.size}", bytes(span.size))))
            self.device.copy_queue.copy(self.target.span(0, span.size), span)
        self.device.copy_queue.signal(fence, fence.last_submitted + 1)
        self.ring.retire(fence, fence.last_submitted)
        self.used += [(span, fence.name, fence.last_submitted) for span in self.fresh]
        self.fresh = []


SIZES = st.one_of(st.integers(1, 700), st.sampled_from([255, 256, 257, 512, 1024]))


@given(
    size=st.integers(1024, 4096),
    requests=st.lists(st.tuples(SIZES, st.integers(0, 3)), min_size=1, max_size=60),
)
def test_a_range_is_aligned_inside_and_free(size: int, requests: list[tuple[int, int]]) -> None:
    bench = Bench(size)
    reached: dict[str, int] = {}
    for wanted, after in requests:
        if sum(256 * -(-span.size // 256) for span in bench.fresh) + wanted > bench.ring.size // 2:
            bench.submit(after % 2)
        span, waits = bench.allocate(wanted)
        assert span.offset % 256 == 0
        assert span.end <= bench.ring.size
        assert not any(span.overlaps(other) for other in bench.fresh[:-1])
        for fence, value in waits:
            reached[fence] = max(reached.get(fence, 0), value)
        for other, fence, value in bench.used:
            assert value <= reached.get(fence, 0) or not span.overlaps(other)
        if after >= 2:
            bench.submit(after % 2)
    bench.device.raise_hazards()


@given(
    size=st.integers(1024, 4096),
    requests=st.lists(SIZES, min_size=1, max_size=60),
)
def test_the_host_waits_only_for_ranges_in_the_way_and_older_ones(size: int, requests: list[int]) -> None:
    bench = Bench(size)
    reached = 0
    for wanted in requests:
        span, waits = bench.allocate(wanted)
        in_the_way = [value for other, _, value in bench.used if value > reached and other.overlaps(span)]
        # The room up to the next multiple of 256 is taken too.
        rounded = Span(span.buffer, span.offset, 256 * -(-span.size // 256))
        in_the_way += [
            value
            for other, _, value in bench.used
            if value > reached and Span(other.buffer, other.offset, 256 * -(-other.size // 256)).overlaps(rounded)
        ]
        values = [value for _, value in waits]
        assert values == sorted(values)
        assert bool(values) == bool(in_the_way)
        if values:
            assert values[-1] == max(in_the_way)
            reached = values[-1]
        bench.submit(0)
    bench.device.raise_hazards()


def test_ranges_are_neighbours_and_begin_at_the_start_where_the_end_is_too_near() -> None:
    bench = Bench(1024)
    offsets = []
    for size in (300, 256, 300, 100):
        offsets.append(bench.allocate(size)[0].offset)
        bench.submit(0)
    assert offsets == [0, 512, 0, 512]


def test_a_full_ring_waits_for_the_fence_of_the_range_that_it_needs() -> None:
    bench = Bench(1024)
    for which in (0, 1, 0, 1):
        assert bench.allocate(256)[1] == []
        bench.submit(which)
    names = [fence.name for fence in bench.fences]
    assert bench.allocate(256)[1] == [(names[0], 1)]
    bench.submit(0)
    assert bench.allocate(512)[1] == [(names[1], 1), (names[0], 2)]
    bench.submit(0)
    assert bench.allocate(1)[1] == [(names[1], 2)]


def test_the_wait_really_blocks_until_the_copy_is_done() -> None:
    with EmulatedDevice(schedule="copies_last") as device:
        ring, target = StagingRing(device, 512), device.create_buffer(256)
        out, fence = device.create_readback_heap(512), device.create_fence()
        for step in range(4):
            span = ring.heap.write(ring.allocate(256), bytes([step]) * 256)
            device.copy_queue.copy(target, span)
            device.copy_queue.copy(out.span(256 * (step % 2), 256), target)
            device.copy_queue.signal(fence, step + 1)
            ring.retire(fence, step + 1)
        fence.wait(4)
        assert out.read("uint8", (512,)).tolist() == [2] * 256 + [3] * 256
        device.raise_hazards()
        ring.close()


@pytest.mark.parametrize("size", [0, -1, 1025, 10**9])
def test_what_can_never_fit_is_refused(size: int) -> None:
    ring = StagingRing(SimulatedDevice(GPU_SPECS["laptop"]), 1000)
    assert ring.size == 1024
    with pytest.raises(BufferRangeError, match="1024 bytes cannot hand out"):
        ring.allocate(size)
    assert ring.allocate(1024) == 0


def test_a_ring_full_of_ranges_that_nobody_copied_from_says_so() -> None:
    bench = Bench(512)
    bench.allocate(512)
    with pytest.raises(RuntimeError, match=r"retire\(\)"):
        bench.ring.allocate(1)
    bench.submit(0)
    assert bench.allocate(1)[1] == [(bench.fences[0].name, 1)]


def test_retiring_announces_only_what_was_handed_out_since() -> None:
    bench = Bench(1024)
    bench.allocate(256)
    bench.allocate(256)
    bench.submit(0)
    bench.allocate(512)
    bench.submit(1)
    assert bench.allocate(512)[1] == [(bench.fences[0].name, 1), (bench.fences[0].name, 1)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_staged_layers_wait_for_the_copy_that_had_their_room(depth: int) -> None:
    config = tiny(4).config()
    layout = layer_layout(config)
    device = SimulatedDevice(GPU_SPECS["laptop"])
    device.sources.mount(SizedWeights(config))
    host, fence = StagedLayers(device, layout, depth), device.create_fence()
    slot = device.create_buffer(layout.nbytes)
    for count in range(8):
        first = len(device.stream)
        spans = [piece.span for piece in host.stage(count % 4)]
        assert [span.size for span in spans] == [group.nbytes for group in layout.groups]
        waits = [r.value for r in device.stream.records[first:] if isinstance(r, HostWait)]
        assert waits == ([count - depth + 1] if count >= depth else [])
        device.copy_queue.copy(slot.span(0, spans[0].size), spans[0])
        device.copy_queue.copy(slot.span(spans[0].size, spans[1].size), spans[1])
        device.copy_queue.signal(fence, count + 1)
        host.copied(fence, count + 1)
    fence.wait(8)
    host.close()
    host.close()
    device.raise_hazards()


def test_pinned_layers_are_written_once() -> None:
    config = tiny(4).config()
    device = SimulatedDevice(GPU_SPECS["laptop"])
    device.sources.mount(SizedWeights(config))
    host = PinnedLayers(device, layer_layout(config), 4)
    written = len(device.stream)
    spans = [[piece.span for piece in host.stage(layer)] for _ in range(2) for layer in range(4)]
    assert spans[:4] == spans[4:]
    assert len({span.buffer for layer in spans for span in layer}) == 4
    assert len(device.stream) == written
