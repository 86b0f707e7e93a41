"""The hazard checker: every race that a stream allows is found, and nothing else."""

import linecache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.device_streams import Script, kernels
from xinfer_lab.device.errors import FenceError, KernelError
from xinfer_lab.device.hazard import HAZARD_KINDS
from xinfer_lab.device.hazards import HazardChecker, find_hazards
from xinfer_lab.device.journal import MissingEdge
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.record_words import place
from xinfer_lab.device.records import (
    HOST,
    Allocate,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Signal,
    Span,
    Transition,
    Wait,
    queue_of,
)

KERNELS = kernels()


def found(script_or_records):
    """(kind, first, second) of every hazard."""
    records = getattr(script_or_records, "records", script_or_records)
    return [(hazard.kind, hazard.first, hazard.second) for hazard in find_hazards(records, KERNELS)]


# ------------------------------------------------------------------------------------------------------ between queues


def test_an_upload_that_the_reader_does_not_wait_for_is_a_read_after_write():
    s = Script()
    upload = s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    reader = s.use(reads="slot")
    assert found(s) == [("read-after-write", upload, reader)]


def test_an_upload_that_the_reader_waits_for_is_none():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    s.use(reads="slot")
    assert found(s) == []


def test_a_signal_before_the_copy_orders_nothing():
    s = Script()
    s.signal("copy", "copied", 1)
    upload = s.copy("copy", "slot", "staging")
    s.wait("direct", "copied", 1)
    reader = s.use(reads="slot")
    assert found(s) == [("read-after-write", upload, reader)]


def test_a_wait_after_the_reader_comes_too_late():
    s = Script()
    upload = s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    reader = s.use(reads="slot")
    s.wait("direct", "copied", 1)
    assert found(s) == [("read-after-write", upload, reader)]


def test_a_slot_refilled_while_it_is_read_is_a_write_after_read():
    s = Script()
    reader = s.use(reads="slot")
    s.signal("direct", "done", 1)
    upload = s.copy("copy", "slot", "staging")
    assert found(s) == [("write-after-read", reader, upload)]
    s.records.insert(upload, Wait(queue="copy", fence="done", value=1))
    assert found(s) == []


def test_two_queues_that_write_the_same_bytes_are_a_write_after_write():
    s = Script()
    first, second = s.copy("copy", "slot", "a"), s.use(writes="slot")
    assert found(s) == [("write-after-write", first, second)]


def test_two_readers_never_race():
    s = Script()
    s.copy("copy", "a", "slot")
    s.use(reads="slot")
    assert found(s) == []


def test_commands_of_one_queue_never_race():
    s = Script()
    s.use(reads="a", writes="b")
    s.use(reads="b", writes="a")
    assert found(s) == []


def test_only_common_bytes_conflict():
    s = Script()
    s.copy("copy", "slot:0:64", "staging:0:64")
    s.use(reads="slot:64:128")
    assert found(s) == []
    upload = s.copy("copy", "slot:127:129", "staging:0:2")
    assert [(h.kind, h.second, h.span) for h in find_hazards(s.records, KERNELS)] == [
        ("write-after-read", upload, Span("slot", 127, 1))
    ]


def test_an_access_in_the_middle_leaves_the_older_ones_around_it():
    s = Script()
    whole = s.copy("copy", "slot", "staging")
    middle = s.copy("copy", "slot:64:128", "staging:64:128")
    s.use(reads="slot:0:64")
    s.use(reads="slot:64:128")
    s.use(reads="slot:128:256")
    assert [(h.first, h.span) for h in find_hazards(s.records, KERNELS)] == [
        (whole, Span("slot", 0, 64)),
        (middle, Span("slot", 64, 64)),
        (whole, Span("slot", 128, 128)),
    ]


def test_one_record_can_race_with_several_queues_and_in_several_ways():
    s = Script()
    a = s.copy("copy", "x", "up")
    b = s.copy("back", "down", "x")
    c = s.use(reads="x", writes="x")
    assert found(s) == [
        ("read-after-write", a, b),
        ("read-after-write", a, c),
        ("write-after-write", a, c),
        ("write-after-read", b, c),
    ]


def test_a_view_without_elements_touches_nothing():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.use(reads="slot:64:64")
    assert found(s) == []
    s = Script()
    s.use(reads="slot:64:64")
    s.copy("copy", "slot", "staging")
    assert found(s) == []


# ------------------------------------------------------------------------------------------------------------ the host


def test_the_host_may_not_write_what_a_copy_still_reads():
    s = Script()
    s.write("staging")
    upload = s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    again = s.write("staging:255:256")
    assert found(s) == [("host-write", upload, again)]
    s.records.insert(again, HostWait(fence="copied", value=1))
    assert found(s) == []


def test_a_queue_wait_does_not_hold_the_host():
    s = Script()
    upload = s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    again = s.write("staging")
    assert found(s) == [("host-write", upload, again)]


def test_the_host_may_not_read_before_the_fence():
    s = Script()
    download = s.copy("direct", "readback", "logits")
    s.signal("direct", "done", 1)
    early = s.read("readback")
    s.host_wait("done", 1)
    s.read("readback")
    assert found(s) == [("host-read", download, early)]


def test_the_host_may_read_what_a_queue_reads():
    s = Script()
    s.copy("copy", "slot", "readback")
    s.read("readback")
    assert found(s) == []


# --------------------------------------------------------------------------------------------------------- use and free


def test_freeing_a_buffer_that_a_queue_still_uses_is_a_use_after_free():
    s = Script()
    s.alloc("slot")
    upload = s.copy("copy", "slot:0:8", "staging:0:8")
    reader = s.use(reads="slot:100:108")
    free = s.free("slot")
    assert found(s) == [("use-after-free", upload, free), ("use-after-free", reader, free)]


def test_freeing_a_buffer_once_the_host_knows_is_none():
    s = Script()
    s.alloc("slot")
    s.use(reads="slot")
    s.signal("direct", "done", 1)
    s.host_wait("done", 1)
    s.free("slot")
    assert found(s) == []


def test_a_queue_wait_is_not_enough_to_free():
    s = Script()
    s.alloc("slot")
    reader = s.use(reads="slot")
    s.signal("direct", "done", 1)
    s.wait("copy", "done", 1)
    free = s.free("slot")
    assert found(s) == [("use-after-free", reader, free)]


@pytest.mark.parametrize("use", ["copy", "use", "write", "read", "barrier", "free"])
def test_a_freed_buffer_is_gone(use):
    s = Script()
    s.alloc("x")
    free = s.free("x")
    later = {
        "copy": lambda: s.copy("copy", "x", "y"),
        "use": lambda: s.use(reads="x"),
        "write": lambda: s.write("x"),
        "read": lambda: s.read("x"),
        "barrier": lambda: s.barrier("direct", "x", "COMMON", "COPY_DEST"),
        "free": lambda: s.free("x"),
    }[use]()
    assert found(s) == [("use-after-free", free, later)]


def test_a_name_can_be_allocated_again_after_it_was_freed():
    s = Script()
    s.alloc("x")
    s.copy("copy", "x", "staging")
    s.signal("copy", "copied", 1)
    s.host_wait("copied", 1)
    s.free("x")
    s.alloc("x")
    s.use(reads="x")
    assert found(s) == []


def test_a_name_allocated_again_under_a_command_in_flight_is_a_use_after_free():
    s = Script()
    s.alloc("x")
    free = s.free("x")
    late = s.copy("copy", "x", "staging")
    s.alloc("x")
    assert found(s) == [("use-after-free", free, late), ("use-after-free", late, late + 1)]


# --------------------------------------------------------------------------------------------------------------- waits


def test_a_wait_on_the_own_queue_does_nothing_and_is_told():
    s = Script()
    upload = s.copy("copy", "slot", "staging")
    signal = s.signal("copy", "copied", 1)
    wait = s.wait("copy", "copied", 1)
    reader = s.use(reads="slot")
    assert found(s) == [("self-wait", signal, wait), ("read-after-write", upload, reader)]


def test_a_wait_for_a_value_that_nobody_signalled_yet_waits_for_nothing():
    s = Script()
    upload = s.copy("copy", "slot", "staging")
    wait = s.wait("direct", "copied", 1)
    s.signal("copy", "copied", 1)
    reader = s.use(reads="slot")
    assert found(s) == [("early-wait", wait, wait), ("read-after-write", upload, reader)]


def test_the_host_can_wait_too_early_as_well():
    s = Script()
    s.signal("copy", "copied", 3)
    wait = s.host_wait("copied", 4)
    assert found(s) == [("early-wait", wait, wait)]


def test_an_early_wait_on_the_own_queue_is_early():
    s = Script()
    wait = s.wait("copy", "copied", 1)
    s.signal("copy", "copied", 1)
    assert found(s) == [("early-wait", wait, wait)]


def test_a_wait_for_zero_is_neither_early_nor_an_order():
    s = Script()
    s.wait("direct", "copied", 0)
    s.host_wait("copied", 0)
    upload = s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 0)
    reader = s.use(reads="slot")
    assert found(s) == [("read-after-write", upload, reader)]


def test_malformed_fences_and_unknown_kernels_are_errors_rather_than_verdicts():
    with pytest.raises(FenceError, match="belongs to queue 'a'"):
        find_hazards([Signal(queue="a", fence="f", value=1), Signal(queue="b", fence="f", value=2)], KERNELS)
    with pytest.raises(KernelError, match="no kernel"):
        find_hazards([Dispatch(queue="direct", kernel="unknown", call=1)], KERNELS)


# ------------------------------------------------------------------------------------- faults that real engines shipped


def ring(layers, pool, tokens, slot):
    """Streamed decoding: ``slot(step)`` holds the layer of a step; layer i+N is fetched once layer i is done."""
    s = Script()
    total = layers * tokens

    def upload(step):
        if step >= pool:
            s.wait("copy", "done", step - pool + 1)
            s.host_wait("copied", step - pool + 1)
        s.write(f"staging{step % pool}")
        s.copy("copy", f"slot{slot(step)}", f"staging{step % pool}")
        s.signal("copy", "copied", step + 1)

    for step in range(min(pool, total)):
        upload(step)
    for step in range(total):
        s.wait("direct", "copied", step + 1)
        s.use(reads=f"slot{slot(step)} hidden", writes="hidden")
        s.signal("direct", "done", step + 1)
        if step + pool < total:
            upload(step + pool)
    return s


@pytest.mark.parametrize("layers", [6, 7, 28])
@pytest.mark.parametrize("pool", [2, 3, 5])
def test_case_1_a_slot_by_layer_number_races_where_the_pool_does_not_divide_the_layers(layers, pool):
    by_layer = found(ring(layers, pool, tokens=4, slot=lambda step: step % layers % pool))
    assert bool(by_layer) == (layers % pool != 0)
    assert {kind for kind, *_ in by_layer} <= {"read-after-write", "write-after-read"}
    assert found(ring(layers, pool, tokens=4, slot=lambda step: step % pool)) == []


def test_every_wait_of_a_streamed_run_is_needed():
    stream = ring(layers=5, pool=2, tokens=2, slot=lambda step: step % 2)
    waits = [i for i, record in enumerate(stream.records) if isinstance(record, (Wait, HostWait))]
    assert waits
    for index in waits:
        assert found(stream.without(index)) != [], stream.records[index]


def test_case_2_a_wait_on_the_stream_that_is_current_names_the_copy_stream_itself():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.signal("copy", "copied", 1)
    wait = s.wait("copy", "copied", 1)
    s.use(reads="slot")
    assert {kind for kind, *_ in found(s)} == {"self-wait", "read-after-write"}
    s.records[wait] = Wait(queue="direct", fence="copied", value=1)
    assert found(s) == []


def test_case_3_weights_freed_while_a_kernel_that_uses_them_is_queued():
    s = Script()
    s.alloc("weights", "hidden")
    kernel = s.use(reads="weights hidden", writes="hidden")
    s.signal("direct", "done", 1)
    free = s.free("weights")
    assert found(s) == [("use-after-free", kernel, free)]
    s.records.insert(free, HostWait(fence="done", value=1))
    assert found(s) == []


def test_case_4_a_buffer_of_the_copy_queue_reused_before_the_direct_queue_has_read_it():
    s = Script()
    s.copy("copy", "slot", "layer0")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    reader = s.use(reads="slot")
    s.signal("direct", "done", 1)
    refill = s.copy("copy", "slot", "layer1")
    assert found(s) == [("write-after-read", reader, refill)]
    s.records.insert(refill, Wait(queue="copy", fence="done", value=1))
    assert found(s) == []


def test_case_5_a_pinned_source_changed_before_its_copy_has_run():
    s = Script()
    s.write("pinned")
    copy = s.copy("copy", "slot", "pinned")
    s.signal("copy", "copied", 1)
    change = s.write("pinned")
    assert found(s) == [("host-write", copy, change)]
    s.records.insert(change, HostWait(fence="copied", value=1))
    assert found(s) == []


def test_case_6_a_download_read_before_its_fence():
    s = Script()
    s.use(writes="logits")
    download = s.copy("direct", "readback", "logits")
    s.signal("direct", "done", 1)
    read = s.read("readback")
    assert found(s) == [("host-read", download, read)]
    s.records.insert(read, HostWait(fence="done", value=1))
    assert found(s) == []


# -------------------------------------------------------------------------------------------------- against brute force

QUEUES = ("direct", "copy", "back")
BUFFERS = ("a", "b")
_spans = st.tuples(st.sampled_from(BUFFERS), st.integers(0, 5), st.integers(1, 4)).map(
    lambda t: f"{t[0]}:{t[1] * 16}:{(t[1] + t[2]) * 16}"
)
_steps = st.one_of(
    st.tuples(st.just("copy"), st.sampled_from(QUEUES), _spans, _spans),
    st.tuples(st.just("use"), st.sampled_from(QUEUES), st.lists(_spans, max_size=2), st.lists(_spans, max_size=2)),
    st.tuples(st.just("signal"), st.sampled_from(QUEUES), st.integers(1, 2)),
    st.tuples(st.just("signal"), st.sampled_from(QUEUES), st.integers(1, 2)),
    st.tuples(st.just("wait"), st.sampled_from((*QUEUES, HOST)), st.sampled_from(QUEUES), st.integers(-2, 1)),
    st.tuples(st.just("wait"), st.sampled_from((*QUEUES, HOST)), st.sampled_from(QUEUES), st.integers(-2, 1)),
    st.tuples(st.sampled_from(("write", "read")), _spans),
    st.tuples(st.sampled_from(("alloc", "free")), st.sampled_from(BUFFERS)),
)
_streams = st.one_of(st.lists(_steps, max_size=12), st.lists(_steps, min_size=20, max_size=40))


def build(steps):
    """The stream of ``steps``: one fence a queue; waits name a value relative to the last one signalled."""
    s, last = Script(), dict.fromkeys(QUEUES, 0)
    for step in steps:
        match step:
            case ("copy", queue, dst, src):
                size = min(
                    int(dst.split(":")[2]) - int(dst.split(":")[1]), int(src.split(":")[2]) - int(src.split(":")[1])
                )
                (d, d0, _), (r, r0, _) = dst.split(":"), src.split(":")
                s.copy(queue, f"{d}:{d0}:{int(d0) + size}", f"{r}:{r0}:{int(r0) + size}")
            case ("use", queue, reads, writes):
                s.use(queue=queue, reads=" ".join(reads), writes=" ".join(writes))
            case ("signal", queue, increment):
                last[queue] += increment
                s.signal(queue, f"{queue}'s fence", last[queue])
            case ("wait", lane, queue, offset):
                value = max(0, last[queue] + offset)
                if lane == HOST:
                    s.host_wait(f"{queue}'s fence", value)
                else:
                    s.wait(lane, f"{queue}'s fence", value)
            case ("write", span):
                s.write(span)
            case ("read", span):
                s.read(span)
            case ("alloc", buffer):
                s.alloc(buffer)
            case ("free", buffer):
                s.free(buffer)
    return s.records


def predecessors(records):
    """For each record the set of those before it, by walking the graph of happens-before edges: no clocks."""
    before = []
    for j, record in enumerate(records):
        # The last of its own lane and the last of the host: those before them follow.
        edges = [i for i in range(j) if queue_of(records[i]) == queue_of(record)][-1:]
        edges += [i for i in range(j) if queue_of(records[i]) == HOST][-1:]
        if isinstance(record, (Wait, HostWait)) and record.value > 0:
            signals = [
                i
                for i in range(j)
                if isinstance(records[i], Signal)
                and records[i].fence == record.fence
                and records[i].value >= record.value
            ]
            edges += signals[:1]
        before.append(set(edges).union(*(before[i] for i in edges)))
    return before


def oracle(records):
    """Every hazard of ``records`` as (kind, first, second): all pairs, nothing pruned."""
    before = predecessors(records)
    hazards = set()
    lifetimes, freed_at, touched = dict.fromkeys(BUFFERS, 0), {}, []
    for j, record in enumerate(records):
        if isinstance(record, (Wait, HostWait)) and record.value > 0:
            signals = [i for i in range(j) if isinstance(records[i], Signal) and records[i].fence == record.fence]
            reaching = [i for i in signals if records[i].value >= record.value]
            if not reaching:
                hazards.add(("early-wait", j, j))
            elif queue_of(records[reaching[0]]) == queue_of(record):
                hazards.add(("self-wait", reaching[0], j))
        if isinstance(record, (Free, Allocate)):
            name = record.buffer
            if isinstance(record, Free) and name in freed_at:
                hazards.add(("use-after-free", freed_at[name], j))
                continue
            for i, lifetime, _, _ in touched:
                if lifetime == (name, lifetimes[name]) and queue_of(records[i]) != HOST and i not in before[j]:
                    hazards.add(("use-after-free", i, j))
            lifetimes[name] += 1
            freed_at.pop(name, None)
            if isinstance(record, Free):
                freed_at[name] = j
            continue
        access = KERNELS.access(record)
        now = [(span, False) for span in access.reads] + [(span, True) for span in access.writes]
        for span, writes in now:
            if span.buffer in freed_at:
                hazards.add(("use-after-free", freed_at[span.buffer], j))
                continue
            for i, lifetime, other, wrote in touched:
                conflict = other.overlaps(span) and (writes or wrote)
                if lifetime == (span.buffer, lifetimes[span.buffer]) and conflict and i not in before[j]:
                    if isinstance(record, HostWrite):
                        kind = "host-write"
                    elif isinstance(record, HostRead):
                        kind = "host-read"
                    else:
                        kind = {(True, False): "read-after-write", (False, True): "write-after-read"}.get(
                            (wrote, writes), "write-after-write"
                        )
                    hazards.add((kind, i, j))
        touched += [(j, (span.buffer, lifetimes[span.buffer]), span, writes) for span, writes in now]
    return hazards


@settings(max_examples=300)
@given(_streams)
@example([("copy", "copy", "a:0:64", "b:0:64"), ("signal", "copy", 1), ("wait", "direct", "copy", 0)])
def test_the_checker_agrees_with_all_pairs_by_brute_force(steps):
    records = build(steps)
    mine, all_of_them = set(found(records)), oracle(records)
    assert mine <= all_of_them
    assert {second for _, _, second in mine} == {second for _, _, second in all_of_them}


@given(_streams)
def test_the_clocks_agree_with_the_graph_of_edges(steps):
    records = build(steps)
    before, order = predecessors(records), Ordering(records)
    for j in range(len(records)):
        assert {i for i in range(len(records)) if order.before(i, j)} == before[j]


@given(_streams)
def test_a_hazard_names_two_records_and_bytes_that_both_touch(steps):
    records = build(steps)
    checker = HazardChecker(KERNELS)
    one_by_one = [hazard for record in records for hazard in checker.observe(record)]
    assert one_by_one == find_hazards(records, KERNELS)
    for hazard in one_by_one:
        assert hazard.kind in HAZARD_KINDS
        assert (records[hazard.first], records[hazard.second]) == (hazard.first_record, hazard.second_record)
        if hazard.kind in ("read-after-write", "write-after-read", "write-after-write", "host-write", "host-read"):
            for record in (hazard.first_record, hazard.second_record):
                access = KERNELS.access(record)
                assert any(hazard.span.overlaps(other) for other in access.reads + access.writes)
        assert hazard.report().startswith(hazard.headline)


@given(_streams)
def test_what_is_issued_later_changes_nothing_about_a_hazard(steps):
    records = build(steps)
    reports = [hazard.report() for hazard in find_hazards(records, KERNELS)]
    for length in (len(records) // 2, len(records)):
        part = [hazard.report() for hazard in find_hazards(records[:length], KERNELS)]
        assert part == reports[: len(part)]


@given(_streams)
def test_the_edge_that_a_report_names_removes_the_hazard(steps):
    records = build(steps)
    for hazard in find_hazards(records, KERNELS):
        edge = hazard.missing
        if hazard.kind == "early-wait" or edge is None or edge.signal is None:
            continue
        assert hazard.first < edge.signal < hazard.second
        if edge.waiter == HOST:
            wait = HostWait(fence=edge.fence, value=edge.value)
        else:
            wait = Wait(queue=edge.waiter, fence=edge.fence, value=edge.value)
        mended = [*records[: hazard.second], wait, *records[hazard.second :]]
        assert (hazard.kind, hazard.first, hazard.second + 1) not in found(mended)


# -------------------------------------------------------------------------------------------------- the missing edge


def test_the_missing_edge_is_the_first_signal_after_the_access_that_nobody_waited_for():
    s = Script()
    s.copy("copy", "slot", "staging")
    signal = s.signal("copy", "copied", 4)
    s.signal("copy", "copied", 5)
    s.use(reads="slot")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert hazard.missing == MissingEdge("direct", "copy", "copied", 4, signal)


def test_the_missing_edge_remembers_a_wait_for_too_little():
    s = Script()
    s.signal("copy", "copied", 3)
    s.copy("copy", "slot", "staging")
    signal = s.signal("copy", "copied", 4)
    wait = s.wait("direct", "copied", 3)
    s.use(reads="slot")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert hazard.missing == MissingEdge("direct", "copy", "copied", 4, signal, wait, 3)


def test_where_no_signal_follows_the_signal_is_missing_and_its_fence_is_guessed_if_there_is_one():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.use(reads="slot")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert hazard.missing == MissingEdge("direct", "copy")
    (hazard,) = find_hazards([Signal(queue="copy", fence="copied", value=1), *s.records], KERNELS)
    assert hazard.missing == MissingEdge("direct", "copy", "copied")


def test_the_missing_edge_of_a_host_access_is_a_host_wait():
    s = Script()
    s.copy("copy", "slot", "staging")
    signal = s.signal("copy", "copied", 1)
    s.write("staging")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert hazard.missing == MissingEdge("host", "copy", "copied", 1, signal)


def test_no_edge_helps_once_a_buffer_is_gone():
    s = Script()
    s.free("x")
    s.use(reads="x")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert hazard.missing is None
    assert "was freed in record 0" in hazard.headline


# ------------------------------------------------------------------------------------------------------------- wording


@pytest.fixture
def program(tmp_path):
    """A file of four lines, and a stream whose records were issued by its lines."""
    path = tmp_path / "lab.py"
    path.write_text(
        "copies.copy(slot, staging)\n"
        "copies.signal(copied, 4)\n"
        "direct.wait(copied, 3)\n"
        "direct.dispatch('use', r0=slot)\n",
        encoding="utf-8",
    )
    s = Script()
    s.signal("copy", "copied", 3)
    s.copy("copy", "slot", "staging", where=f"{path}:1")
    s.signal("copy", "copied", 4, where=f"{path}:2")
    s.wait("direct", "copied", 3, where=f"{path}:3")
    s.use(reads="slot", where=f"{path}:4")
    return path, s.records


def test_a_report_names_the_race_both_lines_the_missing_wait_and_the_effect(program):
    path, records = program
    (hazard,) = find_hazards(records, KERNELS)
    lines = hazard.report().splitlines()
    assert lines[:9] == [
        "read after write: use on the direct queue reads slot[0:256] while the copy on the copy queue may still be "
        "writing it",
        f"  first    record 1, {path}:1: the copy queue: copy slot[0:256] <- staging[0:256]",
        "           | copies.copy(slot, staging)",
        f"  second   record 4, {path}:4: the direct queue: use",
        "           | direct.dispatch('use', r0=slot)",
        "  missing  the wait: the copy queue signals copied = 4 in record 2, but the direct queue does not wait for it",
        "           its last wait for copied, record 3, asks for 3: that is too little",
        "  mend     the direct queue has to wait for copied >= 4 before record 4",
        "  effect   use on the direct queue may start before the bytes are there: it works on what slot held before.",
    ]
    assert str(hazard) == hazard.report()


def test_a_report_draws_the_moment_with_its_fence_edges(program):
    _, records = program
    (hazard,) = find_hazards(records, KERNELS)
    assert hazard.report().partition("\n\n")[2].splitlines() == [
        "     record  copy                               | direct           |",
        "          0  signal copied = 3                  |                  | --> 3",
        "          1  copy slot[0:256] <- staging[0:256] |                  | <== first",
        "          2  signal copied = 4                  |                  | --> nobody: the direct queue does not "
        "wait",
        "          3                                     | wait copied >= 3 | <-- 0",
        "    missing  here the direct queue has to wait for copied >= 4",
        "          4                                     | use              | <== second",
    ]


def test_a_report_reads_notebook_cells():
    name = "<cell 7 of a notebook>"
    linecache.cache[name] = (12, None, ["x = 1\n", "queue.copy(slot, staging)\n"], name)
    try:
        s = Script()
        s.copy("copy", "slot", "staging", where=f"{name}:2")
        s.use(reads="slot")
        (hazard,) = find_hazards(s.records, KERNELS)
        assert "           | queue.copy(slot, staging)" in hazard.report().splitlines()
    finally:
        del linecache.cache[name]


def test_a_report_reads_a_file_again_that_was_changed(program):
    path, records = program
    (hazard,) = find_hazards(records, KERNELS)
    assert "| copies.copy(slot, staging)" in hazard.report()
    path.write_text("# one line more than before, and longer\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert "| # one line more than before" in hazard.report()


@pytest.mark.parametrize("where", ["", "gone.py:3", "no line", "lab.py:many", ":1"])
def test_a_source_line_that_cannot_be_read_is_left_out(where):
    s = Script()
    s.copy("copy", "slot", "staging", where=where)
    s.use(reads="slot")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert f"record 0, {where or 'source line unknown'}: " in hazard.report()
    assert "           |" not in hazard.report().partition("\n\n")[0]


def test_a_report_reads_no_file_where_it_is_told_how_to_find_lines(program):
    path, records = program
    (hazard,) = find_hazards(records, KERNELS)
    asked = []
    report = hazard.report(lambda where: asked.append(where) or "hidden")
    assert "copies.copy" not in report
    assert asked == [f"{path}:1", f"{path}:4"]


def test_names_from_a_stream_cannot_break_the_lines_of_a_report():
    s = Script()
    s.copy("copy", "slot", "sta\nging\x1b[31m")
    s.use(reads="slot")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert "\x1b" not in hazard.report()
    assert "sta?ging?[31m[0:256]" in hazard.report()


@pytest.mark.parametrize(
    ("write", "phrases"),
    [
        (
            lambda s: (s.use(reads="slot"), s.copy("copy", "slot", "up")),
            ["the copy on the copy queue overwrites slot[0:256] while use on the direct queue may still be reading it",
             "missing  the signal: the direct queue signals no fence after record 0 and before record 1",
             "signal a fence on the direct queue after record 0, and let the copy queue wait for that value",
             "here the copy queue has to wait for a signal of the direct queue"],
        ),
        (
            lambda s: (s.use(writes="x"), s.copy("copy", "x", "up")),
            ["write after write: the copy on the copy queue writes x[0:256] while use on the direct queue may still be "
             "writing it", "left to chance"],
        ),
        (
            lambda s: (s.copy("copy", "slot", "up"), s.signal("copy", "copied", 1), s.write("up:0:16")),
            ["the host writes up[0:16] while the copy on the copy queue may still be reading it",
             "the host has to wait for copied >= 1 before record 2"],
        ),
        (
            lambda s: (s.copy("copy", "down", "x"), s.signal("copy", "copied", 1), s.read("down")),
            ["the host reads down[0:256] before the copy on the copy queue has surely written it",
             "but the host does not wait for it"],
        ),
        (
            lambda s: (s.alloc("slot"), s.copy("copy", "slot", "up"), s.free("slot")),
            ["use after free: the host gives slot back while the copy on the copy queue may still be writing it"],
        ),
        (
            lambda s: (s.free("slot"), s.use(reads="slot")),
            ["use after free: use on the direct queue uses slot[0:256], but slot was freed in record 0",
             "free it after record 1, or allocate it again before record 1"],
        ),
        (
            lambda s: (s.signal("copy", "copied", 2), s.wait("copy", "copied", 1)),
            ["the copy queue waits for copied >= 1, which it signals itself in record 0",
             "the wait belongs to the queue that uses the result", "<== first", "<== second"],
        ),
        (
            lambda s: (s.signal("copy", "copied", 2), s.wait("direct", "copied", 3)),
            ["the direct queue waits for copied >= 3, which nothing issued before it signals",
             "a signal of copied with 3 or more before record 1; it was signalled up to 2 so far"],
        ),
        (
            lambda s: (s.host_wait("copied", 3),),
            ["the host waits for copied >= 3", "it was never signalled so far", "<== here"],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_hazard_has_its_words(write, phrases):
    s = Script()
    write(s)
    report = "\n".join(hazard.report() for hazard in find_hazards(s.records, KERNELS))
    for phrase in phrases:
        assert phrase in report


def test_a_wait_that_was_issued_before_its_signal_is_told_with_the_race_it_leaves():
    s = Script()
    s.copy("copy", "slot", "staging")
    s.wait("direct", "copied", 1)
    s.signal("copy", "copied", 1)
    s.use(reads="slot")
    early, race = find_hazards(s.records, KERNELS)
    assert early.kind == "early-wait"
    assert "its last wait for copied, record 1, asks for 1: that was issued too early" in race.report()


def test_every_kind_of_record_can_stand_in_a_picture():
    s = Script()
    s.alloc("x", "y")
    s.barrier("direct", "x", "COMMON", "COPY_DEST")
    s.assume("x")
    s.read("down")
    s.use(writes="x")
    s.copy("copy", "x", "y")
    (hazard,) = find_hazards(s.records, KERNELS)
    assert "barrier x: COMMON -> COPY_DEST" in hazard.report()
    freed = Script()
    freed.alloc("x")
    freed.assume("x")
    freed.free("x")
    freed.barrier("direct", "x", "COMMON", "COPY_DEST")
    (hazard,) = find_hazards(freed.records, KERNELS)
    assert hazard.headline == "use after free: the barrier on the direct queue uses x, but x was freed in record 2"
    assert isinstance(hazard.second_record, Transition)
    assert "assume x in COMMON" in hazard.report()


@pytest.mark.parametrize("where", ["/x/ipykernel_17/123456.py:9", r"C:\Temp\ipykernel_17\123456.py:9"])
def test_a_report_calls_a_notebook_s_line_the_reader_s_own_and_a_file_by_its_name(where):
    assert place(Signal(queue="copy", fence="f", value=1, where=where)) == "your line 9"
    assert place(Signal(queue="copy", fence="f", value=1, where="ipykernel_17.py:9")) == "ipykernel_17.py:9"
    assert place(Signal(queue="copy", fence="f", value=1, where="")) == "source line unknown"
