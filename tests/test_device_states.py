"""Resource states: what D3D12 accepts, what the program's tracker knows, and where the two part."""

import linecache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.device_streams import Script, kernels
from xinfer_lab.device.device_states import DeviceStates
from xinfer_lab.device.errors import StateError, StreamError
from xinfer_lab.device.hazards import find_hazards
from xinfer_lab.device.journal import MissingEdge
from xinfer_lab.device.records import Copy, Wait
from xinfer_lab.device.state_faults import STATE_FAULT_KINDS
from xinfer_lab.device.states import (
    COMMON,
    COPY_DEST,
    COPY_SOURCE,
    GENERIC_READ,
    NON_PIXEL_SHADER_RESOURCE,
    READ_STATES,
    STATES,
    UNORDERED_ACCESS,
    StateTracker,
    join_states,
    required_states,
    split_state,
)
from xinfer_lab.device.tracker_invariant import TrackerInvariant

KERNELS = kernels()
READS = join_states(READ_STATES)


def refused(script):
    """(kind, record, buffer) of everything that the device refuses."""
    device = DeviceStates(KERNELS)
    return [(f.kind, f.record, f.buffer) for record in script.records for f in device.observe(record)]


def untrue(records):
    """(kind, record, buffer) of everything that is wrong with the tracker."""
    invariant = TrackerInvariant(KERNELS)
    return [(f.kind, f.record, f.buffer) for record in records for f in invariant.observe(record)]


# --------------------------------------------------------------------------------------------------------------- names


def test_common_is_the_absence_of_states_and_generic_read_all_reads_at_once():
    assert split_state(COMMON) == frozenset()
    assert split_state(GENERIC_READ) == READ_STATES
    assert split_state(READS) == READ_STATES
    assert join_states(frozenset()) == COMMON


@pytest.mark.parametrize("state", [name for name in STATES if name != GENERIC_READ] + [READS])
def test_names_and_parts_say_the_same(state):
    assert join_states(split_state(state)) == state


@pytest.mark.parametrize("state", ["", "RENDER_TARGET", "COPY_SOURCE|", "copy_dest"])
def test_an_unknown_state_is_refused(state):
    with pytest.raises(StateError, match=r"is no resource state; wanted one of COMMON, COPY_DEST"):
        split_state(state)


@pytest.mark.parametrize("state", ["COPY_DEST|COPY_SOURCE", "COMMON|COPY_SOURCE", "COPY_DEST|UNORDERED_ACCESS"])
def test_only_read_states_combine(state):
    with pytest.raises(StateError, match="only read states combine"):
        split_state(state)


def test_commands_say_which_states_they_need():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.use(reads="slot hidden:0:8", writes="hidden:8:16")
    s.signal("direct", "done", 1)
    s.write("staging")
    assert [required_states(record, KERNELS) for record in s.records] == [
        {"slot": COPY_DEST, "staging": COPY_SOURCE},
        {"slot": NON_PIXEL_SHADER_RESOURCE, "hidden": UNORDERED_ACCESS},
        {},
        {},
    ]


# ------------------------------------------------------------------------------------------------------ what D3D12 does


def test_first_use_promotes_and_the_end_of_the_call_decays():
    device = DeviceStates(KERNELS)
    s = Script()
    s.use(writes="x", call=1)
    s.use(reads="x", call=2)
    s.use(writes="x", call=3)
    states = []
    for record in s.records:
        assert device.observe(record) == ()
        states.append(device.state("x"))
    assert states == [UNORDERED_ACCESS, NON_PIXEL_SHADER_RESOURCE, UNORDERED_ACCESS]
    assert device.state("never seen") == COMMON


def test_calls_of_two_queues_know_nothing_of_each_other():
    s = Script()
    s.copy("copy", "x", "staging", call=1)
    s.use(reads="x", call=2)
    s.copy("copy", "x", "staging", call=3)
    assert refused(s) == []


def test_reads_are_promoted_together():
    s = Script()
    s.use(reads="x", call=1)
    s.copy("direct", "y", "x", call=1)
    s.use(reads="x", call=1)
    assert refused(s) == []
    device = DeviceStates(KERNELS)
    for record in s.records:
        device.observe(record)
    assert device.state("x") == READS


def test_a_write_after_promoted_reads_needs_a_barrier_from_all_of_them():
    s = Script()
    s.use(reads="x", call=1)
    s.copy("direct", "y", "x", call=1)
    barrier = s.barrier("direct", "x", NON_PIXEL_SHADER_RESOURCE, UNORDERED_ACCESS, call=1)
    s.use(writes="x", call=1)
    assert refused(s) == [("rejected", barrier, "x")]
    s.records.pop(barrier)
    s.records.insert(barrier, s.records.pop(s.barrier("direct", "x", READS, UNORDERED_ACCESS, call=1)))
    assert refused(s) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"writes": "x"}, {"reads": "x"}),
        ({"reads": "x"}, {"writes": "x"}),
    ],
)
def test_another_use_in_the_same_call_needs_a_barrier(first, second):
    s = Script()
    s.use(**first, call=1)
    again = s.use(**second, call=1)
    assert refused(s) == [("rejected", again, "x")]


def test_a_written_buffer_can_be_written_again_in_the_same_call():
    s = Script()
    s.use(writes="x", call=1)
    s.use(reads="x", writes="x", call=1)
    assert refused(s) == []


def test_an_explicit_read_state_does_not_grow_by_itself():
    s = Script()
    s.use(writes="x", call=1)
    s.barrier("direct", "x", UNORDERED_ACCESS, NON_PIXEL_SHADER_RESOURCE, call=1)
    s.use(reads="x", call=1)
    copy = s.copy("direct", "y", "x", call=1)
    assert refused(s) == [("rejected", copy, "x")]


@pytest.mark.parametrize("before", [*STATES[:-1], GENERIC_READ, READS])
def test_for_a_buffer_in_common_any_promotable_before_is_accepted(before):
    after = NON_PIXEL_SHADER_RESOURCE if before == UNORDERED_ACCESS else UNORDERED_ACCESS
    s = Script()
    s.barrier("direct", "x", before, after, call=1)
    s.use(**({"writes": "x"} if after == UNORDERED_ACCESS else {"reads": "x"}), call=1)
    assert refused(s) == []


def test_common_asserted_in_the_middle_of_a_call_is_rejected():
    s = Script()
    s.copy("direct", "x", "staging", call=1)
    barrier = s.barrier("direct", "x", COMMON, NON_PIXEL_SHADER_RESOURCE, call=1)
    s.use(reads="x", call=1)
    assert refused(s) == [("rejected", barrier, "x")]
    s.records[barrier] = s.records.pop(s.barrier("direct", "x", COPY_DEST, NON_PIXEL_SHADER_RESOURCE, call=1))
    assert refused(s) == []


def test_the_same_assertion_in_the_next_call_is_right():
    s = Script()
    s.copy("direct", "x", "staging", call=1)
    s.barrier("direct", "x", COMMON, NON_PIXEL_SHADER_RESOURCE, call=2)
    s.use(reads="x", call=2)
    assert refused(s) == []


def test_a_barrier_to_common_makes_a_buffer_promotable_again():
    s = Script()
    s.use(writes="x", call=1)
    s.barrier("direct", "x", UNORDERED_ACCESS, COMMON, call=1)
    s.use(reads="x", call=1)
    assert refused(s) == []


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (COPY_DEST, COPY_DEST, "to the same state"),
        (COMMON, "RENDER_TARGET", "'RENDER_TARGET' is no resource state"),
        ("COPY_DEST|COPY_SOURCE", COMMON, "exclude one another"),
    ],
)
def test_a_barrier_that_makes_no_sense_is_rejected(before, after, wanted):
    s = Script()
    s.barrier("direct", "x", before, after)
    (fault,) = DeviceStates(KERNELS).observe(s.records[0])
    assert (fault.kind, fault.buffer) == ("rejected", "x")
    assert wanted in fault.message


def test_heaps_of_the_host_keep_their_state():
    s = Script()
    s.alloc("up", heap="upload")
    s.alloc("down", heap="readback")
    s.copy("copy", "x", "up", call=1)
    s.copy("direct", "down", "x", call=2)
    s.use(reads="up", call=3)
    assert refused(s) == []
    expected = [
        ("rejected", s.copy("direct", "up", "x", call=4), "up"),
        ("rejected", s.copy("direct", "x", "down", call=5), "down"),
        ("rejected", s.use(writes="up", call=6), "up"),
        ("rejected", s.use(reads="down", call=7), "down"),
        ("rejected", s.barrier("direct", "up", GENERIC_READ, COPY_DEST, call=8), "up"),
        ("rejected", s.barrier("direct", "down", COPY_DEST, COPY_SOURCE, call=9), "down"),
    ]
    assert refused(s) == expected
    device = DeviceStates(KERNELS)
    for record in s.records[:2]:
        device.observe(record)
    assert (device.state("up"), device.state("down")) == (GENERIC_READ, COPY_DEST)


def test_a_name_allocated_again_is_on_the_heap_of_the_new_buffer():
    s = Script()
    s.alloc("x", heap="upload")
    s.free("x")
    s.alloc("x")
    s.use(writes="x", call=1)
    assert refused(s) == []


def test_a_copy_queue_uses_copy_states_only():
    s = Script()
    s.barrier("copy", "x", COPY_DEST, COPY_SOURCE, call=1)
    s.copy("copy", "y", "x", call=1)
    kernel = s.use(queue="copy", reads="y", call=2)
    barrier = s.barrier("copy", "x", COMMON, NON_PIXEL_SHADER_RESOURCE, call=3)
    stale = s.barrier("copy", "x", UNORDERED_ACCESS, COPY_DEST, call=4)
    assert refused(s) == [
        ("copy-queue-state", kernel, "y"),
        ("copy-queue-state", barrier, "x"),
        ("copy-queue-state", stale, "x"),
    ]


def test_a_second_direct_queue_may_use_any_state_once_it_is_named():
    s = Script()
    s.use(queue="direct 2", writes="x")
    names = {"direct"}
    device = DeviceStates(KERNELS, direct=names)
    assert [fault.kind for fault in device.observe(s.records[0])] == ["copy-queue-state"]
    device = DeviceStates(KERNELS, direct=names)
    names.add("direct 2")
    assert device.observe(s.records[0]) == ()


def test_a_buffer_cannot_be_source_and_destination_of_one_copy():
    s = Script()
    copy = s.copy("direct", "x:0:8", "x:8:16")
    assert refused(s) == [("rejected", copy, "x")]


def test_one_mistake_is_told_once():
    s = Script()
    s.use(writes="x", call=1)
    again = s.use(reads="x", call=1)
    s.use(reads="x", call=1)
    assert refused(s) == [("rejected", again, "x")]


def test_a_queue_cannot_take_up_a_call_that_it_has_left():
    s = Script()
    s.use(writes="x", call=2)
    s.use(writes="x", call=1)
    device = DeviceStates(KERNELS)
    device.observe(s.records[0])
    with pytest.raises(StreamError, match="belongs to call 1 of queue 'direct', which has gone on to call 2"):
        device.observe(s.records[1])


# ------------------------------------------------------------------------------------------------ the program's tracker


def test_from_common_no_barrier_is_needed():
    tracker = StateTracker()
    tracker.begin_call("direct")
    assert tracker.use("x", COPY_DEST) is None
    assert tracker.state("x") == COPY_DEST


def test_another_state_needs_a_barrier_from_the_tracked_one():
    tracker = StateTracker()
    tracker.begin_call("direct")
    tracker.use("x", UNORDERED_ACCESS)
    assert tracker.use("x", NON_PIXEL_SHADER_RESOURCE) == (UNORDERED_ACCESS, NON_PIXEL_SHADER_RESOURCE)
    assert tracker.use("x", NON_PIXEL_SHADER_RESOURCE) is None
    assert tracker.use("x", COPY_SOURCE) == (NON_PIXEL_SHADER_RESOURCE, READS)
    assert tracker.use("x", COPY_DEST) == (READS, COPY_DEST)


def test_promoted_reads_combine_without_a_barrier():
    tracker = StateTracker()
    tracker.begin_call("direct")
    assert tracker.use("x", NON_PIXEL_SHADER_RESOURCE) is None
    assert tracker.use("x", COPY_SOURCE) is None
    assert tracker.state("x") == READS
    assert tracker.use("x", UNORDERED_ACCESS) == (READS, UNORDERED_ACCESS)


def test_the_end_of_a_direct_call_returns_what_it_touched_to_common():
    tracker = StateTracker()
    tracker.begin_call("copy")
    tracker.use("elsewhere", COPY_DEST)
    tracker.end_call("copy")
    tracker.begin_call("direct")
    tracker.use("x", UNORDERED_ACCESS)
    tracker.end_call("direct")
    assert tracker.state("x") == COMMON
    assert tracker.state("elsewhere") == COPY_DEST


def test_what_a_copy_call_touched_stays_until_the_program_assumes_common():
    tracker = StateTracker()
    tracker.begin_call("copy")
    tracker.use("slot", COPY_DEST)
    tracker.end_call("copy")
    assert tracker.state("slot") == COPY_DEST
    tracker.assume_common("slot")
    assert tracker.state("slot") == COMMON
    tracker.begin_call("direct")
    assert tracker.use("slot", NON_PIXEL_SHADER_RESOURCE) is None


def test_without_it_the_next_use_records_a_stale_barrier():
    tracker = StateTracker()
    tracker.begin_call("copy")
    tracker.use("slot", COPY_DEST)
    tracker.end_call("copy")
    tracker.begin_call("direct")
    assert tracker.use("slot", NON_PIXEL_SHADER_RESOURCE) == (COPY_DEST, NON_PIXEL_SHADER_RESOURCE)


def test_reads_that_another_call_left_behind_are_joined_by_a_barrier():
    tracker = StateTracker()
    tracker.begin_call("copy")
    assert tracker.use("x", COPY_SOURCE) is None
    tracker.end_call("copy")
    tracker.begin_call("direct")
    assert tracker.use("x", NON_PIXEL_SHADER_RESOURCE) == (COPY_SOURCE, READS)


def test_a_barrier_by_hand_is_remembered():
    tracker = StateTracker()
    tracker.begin_call("direct")
    tracker.barrier("x", NON_PIXEL_SHADER_RESOURCE)
    assert tracker.use("x", NON_PIXEL_SHADER_RESOURCE) is None
    assert tracker.use("x", COPY_SOURCE) == (NON_PIXEL_SHADER_RESOURCE, READS)


def test_heaps_of_the_host_are_not_tracked():
    tracker = StateTracker()
    tracker.allocate("up", "upload")
    tracker.allocate("x", "default")
    tracker.begin_call("copy")
    assert tracker.use("up", COPY_SOURCE) is None
    assert tracker.use("up", COPY_DEST) is None
    tracker.barrier("up", COPY_DEST)
    tracker.end_call("copy")
    assert (tracker.state("up"), tracker.state("x")) == (GENERIC_READ, COMMON)
    tracker.free("up")
    assert tracker.state("up") == COMMON


def test_a_call_is_begun_once_and_ended_by_its_queue():
    tracker = StateTracker()
    with pytest.raises(StateError, match="outside of a call"):
        tracker.use("x", COPY_DEST)
    with pytest.raises(StateError, match="outside of a call"):
        tracker.barrier("x", COPY_DEST)
    tracker.begin_call("copy")
    with pytest.raises(StateError, match="'copy' is still being recorded"):
        tracker.begin_call("direct")
    with pytest.raises(StateError, match="'direct' has no call to end; being recorded: 'copy'"):
        tracker.end_call("direct")


_uses = st.lists(
    st.tuples(st.sampled_from(("x", "y")), st.sampled_from(("read", "write", "from", "to"))), min_size=1, max_size=5
)


@given(st.lists(st.tuples(st.sampled_from(("direct", "copy")), _uses, st.booleans()), min_size=2, max_size=8))
def test_the_device_never_refuses_what_the_tracker_makes_of_a_list(calls):
    # Stale or not: a tracker that begins with what the last call left records only barriers that D3D12 accepts.
    s, tracker = Script(), StateTracker()
    for call, (queue, uses, assume) in enumerate(calls):
        tracker.begin_call(queue)
        for buffer, verb in uses:
            match verb if queue == "direct" else {"read": "from", "write": "to"}.get(verb, verb):
                case "read":
                    s.use(reads=buffer, call=call, listed=True)
                case "write":
                    s.use(writes=buffer, call=call, listed=True)
                case "from":
                    s.copy(queue, f"other {buffer}", buffer, call=call, listed=True)
                case "to":
                    s.copy(queue, buffer, f"other {buffer}", call=call, listed=True)
            command = s.records.pop()
            for name, state in required_states(command, KERNELS).items():
                if barrier := tracker.use(name, state):
                    s.barrier(queue, name, *barrier, call=call)
            s.records.append(command)
        tracker.end_call(queue)
        if assume:
            tracker.assume_common("x")
            s.assume("x")
    assert refused(s) == []
    # And the stream alone tells what the tracker held.
    invariant = TrackerInvariant(KERNELS)
    for record in s.records:
        invariant.observe(record)
    invariant._end_call()
    for buffer in ("x", "y", "other x", "other y"):
        assert invariant._tracker.state(buffer) == tracker.state(buffer)


# -------------------------------------------------------------------------------------- tracker == device at each call


def ensure(wait=True, assume=True, assume_first=False, listed=True):
    """An upload on the copy queue, and a call of the direct queue that reads it after `ensure`."""
    s = Script()
    s.alloc("slot", "hidden")
    s.alloc("staging", heap="upload")
    s.copy("copy", "slot", "staging", listed=listed)
    s.signal("copy", "copied", 1)
    if assume and assume_first:
        s.assume("slot")
    if wait:
        s.wait("direct", "copied", 1)
    if assume and not assume_first:
        s.assume("slot")
    if not assume and listed:
        s.barrier("direct", "slot", COPY_DEST, NON_PIXEL_SHADER_RESOURCE, call=2)
    s.use(reads="slot", writes="hidden", call=2, listed=True)
    return s


def test_wait_then_assume_common_holds_the_invariant():
    s = ensure()
    assert untrue(s.records) == []
    assert refused(s) == []
    assert find_hazards(s.records, KERNELS) == []


def test_a_missing_assume_common_leaves_the_tracker_stale_and_d3d12_lets_it_pass():
    s = ensure(assume=False)
    first_of_call = 6
    assert untrue(s.records) == [("tracker-stale", first_of_call, "slot")]
    assert refused(s) == []
    assert find_hazards(s.records, KERNELS) == []


def test_common_assumed_before_the_wait_is_too_early():
    s = ensure(assume_first=True)
    assert untrue(s.records) == [("assumed-too-early", 5, "slot")]
    assert refused(s) == []
    assert find_hazards(s.records, KERNELS) == []


def test_common_assumed_without_a_wait_is_too_early_and_a_hazard():
    s = ensure(wait=False)
    assert untrue(s.records) == [("assumed-too-early", 5, "slot")]
    assert [hazard.kind for hazard in find_hazards(s.records, KERNELS)] == ["read-after-write"]


def test_a_host_wait_makes_the_claim_true_as_well():
    s = ensure(wait=False, assume=False)
    s.records[5:] = []
    s.host_wait("copied", 1)
    s.assume("slot")
    s.use(reads="slot", listed=True)
    assert untrue(s.records) == []


def test_the_tracker_sees_lists_only():
    s = ensure(assume=False, listed=False)
    assert untrue(s.records) == []


def test_a_claim_is_about_the_device_so_commands_outside_of_lists_count_for_it():
    s = ensure(wait=False, listed=False)
    assert untrue(s.records) == [("assumed-too-early", 5, "slot")]


def test_a_call_outside_of_a_list_finds_a_stale_tracker_too():
    s = Script()
    s.copy("copy", "slot", "staging", listed=True)
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    direct = s.use(reads="slot")
    assert untrue(s.records) == [("tracker-stale", direct, "slot")]


def test_every_refill_needs_its_own_claim():
    s = Script()
    for turn in (1, 2):
        s.wait("copy", "done", turn - 1)
        s.copy("copy", "slot", "staging", listed=True)
        s.signal("copy", "copied", turn)
        s.wait("direct", "copied", turn)
        if turn == 1:
            s.assume("slot")
        last = s.use(reads="slot", listed=True)
        s.signal("direct", "done", turn)
    assert untrue(s.records) == [("tracker-stale", last, "slot")]


def test_a_direct_call_cleans_up_after_itself_and_after_a_stale_state():
    s = ensure(assume=False)
    s.use(reads="slot", listed=True)
    s.use(writes="slot", listed=True)
    assert untrue(s.records) == [("tracker-stale", 6, "slot")]


def test_buffers_are_told_once_a_call_and_each_by_name():
    s = Script()
    s.copy("copy", "slot1", "staging", call=1, listed=True)
    s.copy("copy", "slot2", "staging", call=1, listed=True)
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    both = s.use(reads="slot1 slot2", call=2, listed=True)
    s.use(reads="slot1 slot2", call=2, listed=True)
    assert untrue(s.records) == [("tracker-stale", both, "slot1"), ("tracker-stale", both, "slot2")]


def test_heaps_of_the_host_are_left_out_and_a_freed_name_starts_anew():
    s = Script()
    s.alloc("slot")
    s.alloc("staging", heap="upload")
    s.copy("copy", "slot", "staging", listed=True)
    s.signal("copy", "copied", 1)
    s.host_wait("copied", 1)
    s.free("slot")
    s.alloc("slot")
    s.use(reads="slot staging", listed=True)
    assert untrue(s.records) == []


def test_a_claim_about_a_new_buffer_is_not_about_the_old_one_of_that_name():
    s = Script()
    s.alloc("slot")
    s.copy("copy", "slot", "staging")
    s.free("slot")
    s.alloc("slot")
    s.assume("slot")
    assert untrue(s.records) == []


def test_a_name_that_was_on_an_upload_heap_can_be_tracked_later():
    s = Script()
    s.alloc("slot", heap="upload")
    s.free("slot")
    s.alloc("slot")
    s.copy("copy", "slot", "staging", listed=True)
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    reader = s.use(reads="slot", listed=True)
    assert untrue(s.records) == [("tracker-stale", reader, "slot")]


def test_a_claim_inside_of_a_list_keeps_its_place():
    s = Script()
    s.copy("copy", "slot", "staging", call=1, listed=True)
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    s.use(writes="hidden", call=2, listed=True)
    s.assume("slot")
    s.use(reads="slot", call=2, listed=True)
    assert untrue(s.records) == []
    assert refused(s) == []


def test_a_claim_in_the_middle_of_a_call_hides_a_barrier_that_the_device_asks_for():
    s = Script()
    s.copy("direct", "x", "staging", call=1, listed=True)
    s.assume("x")
    reader = s.use(reads="x", call=1, listed=True)
    assert refused(s) == [("rejected", reader, "x")]


def test_a_barrier_of_an_unknown_state_is_left_to_the_device():
    s = Script()
    barrier = s.barrier("direct", "x", COMMON, "RENDER_TARGET")
    assert untrue(s.records) == []
    assert refused(s) == [("rejected", barrier, "x")]


def test_every_last_use_elsewhere_has_to_be_over():
    s = Script()
    s.copy("copy", "slot", "staging", listed=True)
    s.signal("copy", "copied", 1)
    s.wait("back", "copied", 1)
    back = s.copy("back", "down", "slot", listed=True)
    s.signal("back", "saved", 1)
    s.wait("direct", "copied", 1)
    claim = s.assume("slot")
    fault = only_fault(TrackerInvariant(KERNELS), s.records)
    assert (fault.kind, fault.record, fault.first) == ("assumed-too-early", claim, back)
    assert fault.missing == MissingEdge("direct", "back", "saved", 1, back + 1)
    s.records.insert(claim, Wait(queue="direct", fence="saved", value=1))
    assert untrue(s.records) == []


# ------------------------------------------------------------------------------------------------------------- wording


def only_fault(observer, records):
    (fault,) = [fault for record in records for fault in observer.observe(record)]
    assert fault.kind in STATE_FAULT_KINDS
    return fault


def test_a_stale_tracker_is_told_with_who_left_it_so_and_what_d3d12_says():
    name = "<stale>"
    linecache.cache[name] = (1, None, ["upload(slot)\n", "compute(slot)\n"], name)
    try:
        s = ensure(assume=False)
        upload, barrier = s.records[3], s.records[6]
        assert isinstance(upload, Copy)
        s.records[3] = Copy(queue="copy", dst=upload.dst, src=upload.src, call=1, listed=True, where=f"{name}:1")
        s.records[6] = type(barrier)(
            queue="direct", buffer="slot", before=barrier.before, after=barrier.after, call=2, where=f"{name}:2"
        )
        fault = only_fault(TrackerInvariant(KERNELS), s.records)
    finally:
        report = fault.report()
        del linecache.cache[name]
    assert report.splitlines()[:7] == [
        "stale tracker: the direct queue is given a call that uses slot, which the tracker holds in COPY_DEST since "
        "record 3; on the device it is in COMMON",
        "  first    record 3, <stale>:1: the copy queue: copy slot[0:256] <- staging[0:256]",
        "           | upload(slot)",
        "  here     record 6, <stale>:2: the direct queue: barrier slot: COPY_DEST -> NON_PIXEL_SHADER_RESOURCE",
        "           | compute(slot)",
        "  mend     add assume_common(slot) after the direct queue's wait and before record 6",
        "  note     D3D12 itself would let it pass: for a buffer in COMMON it takes any promotable state as a "
        "barrier's before. The fence is correctness; the tracker is bookkeeping, and here the books are wrong.",
    ]
    assert "--> 5" in report
    assert "<== first" in report
    assert fault.missing is None


def test_a_stale_tracker_without_a_wait_is_told_that_the_wait_is_missing_too():
    fault = only_fault(TrackerInvariant(KERNELS), ensure(wait=False, assume=False).records)
    assert "the copy queue signals copied = 1 in record 4, but the direct queue does not wait for it" in str(fault)
    assert "mend     add assume_common(slot) after the direct queue's wait" in str(fault)


def test_common_assumed_too_early_is_told_with_the_edge_that_is_missing():
    fault = only_fault(TrackerInvariant(KERNELS), ensure(assume_first=True).records)
    assert fault.headline == (
        "COMMON assumed too early: the program takes slot to be in COMMON, but the direct queue does not wait yet for "
        "record 3, where the copy queue uses it"
    )
    assert "mend     the direct queue has to wait for copied >= 1 before record 5" in fault.report()
    assert "then assume_common(slot): first the wait, then the claim" in fault.report()
    assert "here the direct queue has to wait for copied >= 1" in fault.report()


def test_a_rejected_barrier_is_told_with_the_state_and_who_put_the_buffer_there():
    s = Script()
    s.copy("direct", "x", "staging", call=1)
    s.barrier("direct", "x", COMMON, NON_PIXEL_SHADER_RESOURCE, call=1)
    fault = only_fault(DeviceStates(KERNELS), s.records)
    assert fault.headline == (
        "rejected by the device: the barrier says that x is in COMMON, but record 0 promoted it to COPY_DEST in the "
        "same call"
    )
    assert "mend     record the barrier as x: COPY_DEST -> NON_PIXEL_SHADER_RESOURCE" in fault.report()
    assert "note     D3D12 rejects this" in fault.report()


def test_a_missing_barrier_is_told_with_the_barrier():
    s = Script()
    s.use(writes="x", call=1)
    s.use(reads="x", call=1)
    fault = only_fault(DeviceStates(KERNELS), s.records)
    assert "needs x in NON_PIXEL_SHADER_RESOURCE, but record 0 promoted it to UNORDERED_ACCESS" in fault.message
    assert fault.remedy == "record a barrier x: UNORDERED_ACCESS -> NON_PIXEL_SHADER_RESOURCE before record 1"


def test_a_kernel_on_a_copy_queue_is_told_where_it_belongs():
    s = Script()
    s.use(queue="copy", reads="x")
    fault = only_fault(DeviceStates(KERNELS), s.records)
    assert "which a copy queue cannot use" in fault.message
    assert "run it on the direct queue" in fault.report()
    assert "know COMMON, COPY_DEST and COPY_SOURCE only" in fault.report()


def test_a_report_reads_no_file_where_it_is_told_how_to_find_lines():
    s = Script()
    s.use(queue="copy", reads="x", where="secret.py:1")
    fault = only_fault(DeviceStates(KERNELS), s.records)
    assert "           | given line" in fault.report(lambda where: "given line" if where == "secret.py:1" else "")
