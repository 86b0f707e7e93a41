"""The virtual clock: times worked out by hand, and what holds for every timeline."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device_programs import Ring, emulated, kernels
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable
from xinfer_lab.device.records import Copy, Dispatch, HostWait, Wait
from xinfer_lab.device.simulated import SimulatedDevice, simulate

PLAIN = GpuSpec(
    name="plain",
    memory_bytes=2**40,
    link_bandwidth=100.0,
    link_latency=0.5,
    flops=10.0,
    memory_bandwidth=1000.0,
    launch_time=0.25,
    host_bandwidth=50.0,
)
"""100 bytes take 0.5 + 1 s over the link and 0.25 + 0.2 s inside the device; the host writes them in 2 s."""


def timed_kernels(ran: list[int] | None = None) -> KernelTable:
    """``work`` computes for ``params["flops"]`` operations on nothing, and notes ``params["number"]`` in ``ran``."""
    table = KernelTable()
    table.register(
        Kernel(
            name="work",
            run=lambda tensors, params: ran.append(params["number"]) if ran is not None else None,
            access=lambda operands, params: Access(),
            cost=lambda operands, params: Cost(float(params["flops"]), float(params.get("bytes", 0))),
            workspace=lambda operands, params: int(params.get("workspace", 0)),
            check=lambda operands, params: None,
        )
    )
    return table


@pytest.fixture
def device():
    return SimulatedDevice(PLAIN, kernels=timed_kernels())


def events(device, *kinds):
    """(lane, start, end) of the events of ``kinds``, in record order."""
    return [(e.lane, e.start, e.end) for e in device.timeline().events if e.kind in (kinds or ("copy", "dispatch"))]


def pair(device, size=100):
    return device.create_buffer(size), device.create_upload_heap(size)


# ------------------------------------------------------------------------------------------------------------- by hand


def test_a_queue_does_one_thing_after_the_other(device):
    b, up = pair(device)
    device.copy_queue.copy(b, up)
    device.copy_queue.copy(b.span(0, 50), up.span(0, 50))
    device.direct_queue.dispatch("work", params={"flops": 5})
    device.direct_queue.dispatch("work", params={"flops": 5})
    assert events(device) == [("copy", 0, 1.5), ("copy", 1.5, 2.5), ("direct", 0, 0.75), ("direct", 0.75, 1.5)]


def test_a_kernel_takes_what_is_longer_of_computing_and_moving(device):
    device.direct_queue.dispatch("work", params={"flops": 10, "bytes": 500})
    device.direct_queue.dispatch("work", params={"flops": 1, "bytes": 500})
    assert events(device) == [("direct", 0, 1.25), ("direct", 1.25, 2.0)]


def test_copies_of_two_queues_take_turns_on_the_link(device):
    b, up = pair(device)
    device.copy_queue.copy(b.span(0, 50), up.span(0, 50))
    device.direct_queue.copy(b.span(50), up.span(50))
    assert events(device) == [("copy", 0, 1), ("direct", 1, 2)]


def test_the_link_has_two_directions(device):
    b, up = pair(device)
    back = device.create_readback_heap(100)
    device.copy_queue.copy(b.span(0, 50), up.span(0, 50))
    device.direct_queue.copy(back.span(0, 50), b.span(50))
    assert events(device) == [("copy", 0, 1), ("direct", 0, 1)]


def test_a_copy_inside_the_device_leaves_the_link_alone(device):
    b, up = pair(device)
    other = device.create_buffer(100)
    device.copy_queue.copy(b, up)
    device.direct_queue.copy(other, b)
    assert events(device) == [("copy", 0, 1.5), ("direct", 0, 0.45)]


def test_a_queue_waits_for_the_signal_of_another(device):
    b, up = pair(device)
    fence = device.create_fence("f")
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(fence, 1)
    device.copy_queue.copy(b, up)
    device.direct_queue.dispatch("work", params={"flops": 5})
    device.direct_queue.wait(fence, 1)
    device.direct_queue.dispatch("work", params={"flops": 5})
    assert events(device) == [("copy", 0, 1.5), ("copy", 1.5, 3), ("direct", 0, 0.75), ("direct", 1.5, 2.25)]
    assert events(device, "wait") == [("direct", 0.75, 1.5)]
    (flow,) = device.timeline().flows
    assert (flow.fence, flow.value, flow.signal_time, flow.signal_lane, flow.wait_time, flow.wait_lane) == (
        "f", 1, 1.5, "copy", 1.5, "direct",
    )  # fmt: skip
    assert (flow.signal, flow.wait) == (3, 6)


def test_a_wait_that_is_over_already_takes_no_time(device):
    fence = device.create_fence()
    device.copy_queue.signal(fence, 1)
    device.direct_queue.dispatch("work", params={"flops": 10})
    device.direct_queue.wait(fence, 1)
    timeline = device.timeline()
    assert [event.kind for event in timeline.events] == ["dispatch"]
    assert (timeline.flows[0].signal_time, timeline.flows[0].wait_time) == (0, 1.25)


def test_a_wait_is_released_by_the_first_signal_that_reaches_it(device):
    fence = device.create_fence()
    for value in (2, 5, 9):
        device.copy_queue.dispatch("work", params={"flops": 7.5})
        device.copy_queue.signal(fence, value)
    for value in (9, 3, 2, 1):
        fence_queue = device.create_queue(f"q{value}")
        fence_queue.wait(fence, value)
    assert events(device, "wait") == [("q9", 0, 3), ("q3", 0, 2), ("q2", 0, 1), ("q1", 0, 1)]


def test_a_wait_for_0_waits_for_nothing(device):
    fence = device.create_fence()
    device.copy_queue.dispatch("work", params={"flops": 7.5})
    device.copy_queue.signal(fence, 1)
    fence.wait(0)
    device.direct_queue.wait(fence, 0)
    assert events(device, "wait", "host_wait") == [] and device.timeline().flows == ()


def test_the_host_is_busy_while_it_writes_and_blocked_while_it_waits(device):
    b, up = pair(device)
    fence = device.create_fence()
    up.write(0, bytes(100))
    device.copy_queue.copy(b, up)
    device.copy_queue.signal(fence, 1)
    fence.wait(1)
    up.write(0, bytes(100), name="second")
    device.copy_queue.copy(b, up)
    back = device.create_readback_heap(100)
    back.read("uint8", (50,))
    assert [(e.lane, e.kind, e.start, e.end) for e in device.timeline().events] == [
        ("host", "host_write", 0, 2),
        ("copy", "copy", 2, 3.5),
        ("host", "host_wait", 2, 3.5),
        ("host", "host_write", 3.5, 5.5),
        ("copy", "copy", 5.5, 7),
        ("host", "host_read", 5.5, 6.5),
    ]


def test_nothing_starts_before_the_host_submitted_it(device):
    fence = device.create_fence()
    device.copy_queue.dispatch("work", params={"flops": 7.5})
    device.copy_queue.signal(fence, 1)
    fence.wait(1)
    device.direct_queue.dispatch("work", params={"flops": 7.5})
    assert events(device) == [("copy", 0, 1), ("direct", 1, 2)]


def test_the_memory_curve_shows_device_memory_only(device):
    b, up = pair(device)
    up.write(0, bytes(100))
    c = device.create_buffer(40)
    b.free()
    c.free()
    timeline = device.timeline()
    assert [(sample.time, sample.used) for sample in timeline.memory] == [(0, 100), (2, 140), (2, 40), (2, 0)]
    assert timeline.peak_memory == 140


def test_the_memory_curve_counts_workspace_from_the_submission_of_its_kernel(device):
    fence = device.create_fence()
    device.copy_queue.dispatch("work", params={"flops": 7.5})
    device.copy_queue.signal(fence, 1)
    device.direct_queue.wait(fence, 1)
    for workspace in (30, 10, 50):
        device.direct_queue.dispatch("work", params={"flops": 1, "workspace": workspace})
    device.create_buffer(100)
    timeline = device.timeline()
    assert [(sample.time, sample.used) for sample in timeline.memory] == [(0, 30), (0, 50), (0, 150)]
    assert timeline.peak_memory == device.memory.use().peak == 150


def test_a_timeline_knows_its_sums(device):
    b, up = pair(device)
    device.copy_queue.copy(b, up)
    fence = device.create_fence()
    device.copy_queue.signal(fence, 1)
    device.direct_queue.wait(fence, 1)
    device.direct_queue.dispatch("work", params={"flops": 5}, label="mine")
    timeline = device.timeline()
    assert (timeline.duration, timeline.busy("direct"), timeline.busy("direct", "wait")) == (2.25, 0.75, 1.5)
    assert (timeline.lanes, timeline.clock) == (("direct", "copy", "host"), "virtual clock, plain")
    assert [event.label for event in timeline.events] == ["copy upload.1 to default.1", "wait fence.1 >= 1", "mine"]
    assert timeline.events[-1].duration == 0.75


def test_an_empty_timeline_is_one_too(device):
    timeline = device.timeline()
    assert (timeline.duration, timeline.peak_memory, timeline.events) == (0, 0, ())


def test_streaming_hides_transfers_that_take_no_longer_than_computing():
    """A pool of 2, T_comp = T_trans = 1: layers run back to back once the first is there."""
    table = kernels()
    spec = GpuSpec.lab(1, layer_bytes=256, layer_cost=Cost(2.0e6, 0), transfer_time=1.0)
    device = SimulatedDevice(spec, kernels=table)
    Ring(device, layers=6, pool=2).run()
    folds = [e for e in device.timeline().events if e.kind == "dispatch"]
    assert [round(e.start, 9) for e in folds] == [2, 3, 4, 5, 6, 7]  # the zeroed total is the first transfer


# -------------------------------------------------------------------------------------------------- any program


@st.composite
def programs(draw):
    """A way to drive a device with sensible and senseless fences, all of them admissible."""
    return draw(
        st.lists(
            st.tuples(st.sampled_from(["copy", "back", "work", "signal", "wait", "host", "write"]), st.booleans(),
                      st.integers(1, 60)),
            max_size=30,
        )
    )  # fmt: skip


def drive(device, program):
    b, up, back = device.create_buffer(60), device.create_upload_heap(60), device.create_readback_heap(60)
    fences = {name: device.create_fence(name) for name in ("direct", "copy")}
    up.write(0, bytes(60))
    for verb, direct, size in program:
        queue = device.direct_queue if direct else device.copy_queue
        other = fences["copy" if direct else "direct"]
        match verb:
            case "copy":
                queue.copy(b.span(0, size), up.span(0, size))
            case "back":
                queue.copy(back.span(0, size), b.span(0, size))
            case "work":
                queue.dispatch("work", params={"flops": size, "number": len(device.stream), "workspace": size})
            case "signal":
                queue.signal(fences[queue.name], fences[queue.name].last_submitted + 1)
            case "wait" if other.last_submitted:
                queue.wait(other, 1 + size % other.last_submitted)
            case "host" if other.last_submitted:
                other.wait(1 + size % other.last_submitted)
            case "write":
                up.write(0, bytes(size), name=f"zeros {size}")


@given(programs())
@settings(max_examples=60)
def test_every_timeline_is_consistent(program):
    device = SimulatedDevice(PLAIN, kernels=timed_kernels(), check=False)
    drive(device, program)
    timeline = device.timeline()
    by_record = {event.record: event for event in timeline.events}
    # A lane does one thing after the other, in the order of issue.
    last: dict[str, float] = {}
    for event in timeline.events:
        assert event.end >= event.start >= last.get(event.lane, 0)
        last[event.lane] = event.end
    # The link does one copy at a time in each direction.
    heaps = {"default.1": "default", "upload.1": "upload", "readback.1": "readback"}
    for direction in ("upload", "readback"):
        free = 0.0
        for event in timeline.events:
            record = device.stream[event.record]
            if isinstance(record, Copy) and direction in (heaps[record.src.buffer], heaps[record.dst.buffer]):
                assert event.start >= free
                free = event.end
    # No wait is over before its signal, no signal comes before what precedes it on its queue.
    for flow in timeline.flows:
        assert flow.wait_time >= flow.signal_time and flow.signal < flow.wait
        before = [e for e in timeline.events if e.lane == flow.signal_lane and e.record < flow.signal]
        assert all(event.end <= flow.signal_time for event in before)
        after = [e for e in timeline.events if e.lane == flow.wait_lane and e.record > flow.wait]
        assert all(event.start >= flow.signal_time for event in after)
    # Every copy and kernel is there once, with the duration of the spec.
    for index, record in enumerate(device.stream):
        if isinstance(record, (Copy, Dispatch)) or (index in by_record and isinstance(record, (Wait, HostWait))):
            assert by_record[index].duration > 0
    assert [sample.time for sample in timeline.memory] == sorted(sample.time for sample in timeline.memory)


@given(programs())
@settings(max_examples=30)
def test_a_stream_takes_the_same_time_simulated_emulated_and_walked(program):
    one = EmulatedDevice(spec=PLAIN, kernels=timed_kernels(), check=False)
    two = SimulatedDevice(PLAIN, kernels=timed_kernels(), check=False)
    drive(one, program)
    drive(two, program)
    assert one.timeline() == two.timeline() == simulate(one.stream, PLAIN, one.kernels)


def test_a_ring_takes_the_same_time_simulated_emulated_and_walked():
    spec = GPU_SPECS["laptop"]
    one, two = emulated(spec=spec), SimulatedDevice(spec, kernels=kernels())
    results = [Ring(device, 7, 3).run() for device in (one, two)]
    assert one.timeline() == two.timeline() == simulate(one.stream, spec, one.kernels)
    assert results[1] == [0.0] * 64  # a simulation has sizes and no numbers


@given(programs())
@settings(max_examples=30)
def test_the_timed_schedule_runs_kernels_in_the_order_of_their_times(program):
    ran: list[int] = []
    device = EmulatedDevice(spec=PLAIN, kernels=timed_kernels(ran), schedule="timed", check=False)
    drive(device, [step for step in program if step[0] != "host"])
    # One wait for everything: an earlier one would run some and leave the rest for later, whatever its time.
    ends, last = device.create_fence(), device.create_fence()
    device.direct_queue.signal(ends, 1)
    device.copy_queue.wait(ends, 1)
    device.copy_queue.signal(last, 1)
    last.wait(1)
    starts = {event.record: event.start for event in device.timeline().events if event.kind == "dispatch"}
    assert sorted(ran) == sorted(starts)
    assert [starts[number] for number in ran] == sorted(starts.values())
