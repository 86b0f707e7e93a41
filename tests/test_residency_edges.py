"""No wait, signal or `assume_common` of the residencies can be left out unnoticed.

Twice: on recorded streams, record by record, against a brute-force search for races; and on the source, statement by
statement, with the package run without it.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import pytest
import torch

from tests.models import PROMPT, Models, tiny
from tests.mutants import Statement, statements, without
from tests.page_edges import PAGE_CASES, InFlight
from xinfer_lab.device import rollback
from xinfer_lab.device.checker import check_stream
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import DeviceError, EarlyWait, HazardError
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.records import (
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    HostWait,
    Record,
    Signal,
    Source,
    Span,
    Wait,
    queue_of,
)
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.paging import tickets, transfers
from xinfer_lab.residency import (
    experts,
    load,
    mixture,
    model,
    paged,
    paged_cache,
    paged_experts,
    resident,
    serial,
    staging,
    streaming,
    upload,
)
from xinfer_lab.residency.kernels import layer_params
from xinfer_lab.residency.model import QwenModel

LAYERS = 4
SCHEDULES = ("timed", "copies_first", "copies_last", *(f"random({seed})" for seed in range(17)))


# Programs: one residency each, and what is done with it


def announced(model: QwenModel) -> None:
    """Two passes, announced together."""
    model.begin(2)
    for _ in range(2):
        model.forward(PROMPT)


def stopped_early(model: QwenModel) -> None:
    """Three passes announced, one run: uploads are in flight at the end."""
    model.begin(3)
    model.forward(PROMPT)


def one_by_one(model: QwenModel) -> None:
    """Each pass a run of its own."""
    for _ in range(2):
        model.forward(PROMPT)


def by_hand(model: QwenModel) -> None:
    """A source used by hand: the host does not wait for its last layers before it closes it."""
    model.source.begin(1)
    hidden = model._state.begin((1, 1, model.config.hidden_size))
    for layer in range(LAYERS):
        weights = model.source.ensure(layer)
        with model.device.direct_queue.record() as commands:
            params = layer_params(layer_params_spec(model), 0)
            commands.dispatch(
                "decoder_layer", params=params, hidden=hidden, kv=model.cache.ensure(layer, 0, 1), **weights.views
            )
        model.source.release(layer)


def interrupted(model: QwenModel) -> None:
    """A pass that an error ends between two layers, and another pass."""

    class Interruption(Exception):
        pass

    def interrupt(layer: int) -> None:
        if layer == 1:
            raise Interruption

    release = model.source.release
    model.source.release = lambda layer: (release(layer), interrupt(layer))
    with pytest.raises(Interruption):
        model.forward(PROMPT)
    model.source.release = release
    model.forward(PROMPT)


def layer_params_spec(model: QwenModel):
    from xinfer_lab.qwen2 import layer_spec

    return layer_spec(model.config, 0)


OPENERS: dict[str, Callable[..., QwenModel]] = {
    "resident": QwenModel.load,
    "streaming": lambda path, device: QwenModel.load_streaming(path, device, 3),
    "streaming, staged": lambda path, device: QwenModel.load_streaming(path, device, 3, host_memory="staged"),
    "serial": QwenModel.load_serial,
    "serial, staged": lambda path, device: QwenModel.load_serial(path, device, host_memory="staged"),
}
PROGRAMS = (announced, stopped_early, one_by_one, by_hand, interrupted)


def run(models: Models, opener: str, program: Callable[[QwenModel], None], schedule: str = "timed") -> EmulatedDevice:
    """``program`` on a device of its own, from loading to closing the model."""
    device = EmulatedDevice(schedule=schedule)
    model = OPENERS[opener](models.path(tiny(LAYERS)), device)
    program(model)
    model.close()
    return device


def failed_load(models: Models, schedule: str = "timed") -> EmulatedDevice:
    """A load that fails while the copy queue is at work."""
    device = EmulatedDevice(schedule=schedule)

    def upload_and_fail(device, weights):
        uploader = load.Uploader(device, 4096)
        uploader.upload(device.create_buffer(4096), 0, Source("model.embed_tokens.weight", 0, 4096))
        raise ArithmeticError

    from xinfer_lab.qwen2 import Checkpoint
    from xinfer_lab.residency.weights import CheckpointWeights

    with Checkpoint.open(models.path(tiny(LAYERS))) as checkpoint, pytest.raises(ArithmeticError):
        QwenModel(CheckpointWeights(checkpoint), device, upload_and_fail)
    return device


# By brute force: what races


def accesses(stream: CommandStream, kernels: KernelTable) -> list[tuple[int, tuple[Span, ...], tuple[Span, ...]]]:
    """(record, reads, writes) of everything that touches bytes; a buffer given back or created counts as written."""
    found, sizes = [], {}
    for index, record in enumerate(stream):
        if isinstance(record, Allocate):
            sizes[record.buffer] = record.size
        if isinstance(record, (Allocate, Free)):
            found.append((index, (), (Span(record.buffer, 0, sizes[record.buffer]),)))
        else:
            access = kernels.access(record)
            if access.reads or access.writes:
                found.append((index, access.reads, access.writes))
    return found


def conflicts(stream: CommandStream, kernels: KernelTable) -> Iterator[tuple[int, int]]:
    """Pairs of records on different lanes that touch a common byte, one of them writing it."""
    for (i, reads, writes), (j, others_reads, others_writes) in combinations(accesses(stream, kernels), 2):
        if queue_of(stream[i]) == queue_of(stream[j]):
            continue
        pairs = [(a, b) for a in writes for b in (*others_reads, *others_writes)]
        pairs += [(a, b) for a in reads for b in others_writes]
        if any(a.overlaps(b) for a, b in pairs):
            yield i, j


def is_sync(record: Record) -> bool:
    return isinstance(record, (Signal, Wait, HostWait, AssumeCommon))


@pytest.mark.parametrize(
    ("opener", "program"),
    [(opener, program) for opener in OPENERS for program in PROGRAMS if opener != "resident" or program is by_hand],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_missing_record_is_reported_exactly_when_something_races(
    models: Models, opener: str, program: Callable[[QwenModel], None]
) -> None:
    device = run(models, opener, program)
    stream, kernels = device.stream, device.kernels
    assert not check_stream(stream, kernels)
    assert not device.hazards and not device.state_faults
    pairs = list(conflicts(stream, kernels))
    assert pairs and all(Ordering(stream).before(i, j) for i, j in pairs)
    reported = 0
    for index, record in enumerate(stream):
        if not is_sync(record):
            continue
        found = check_stream(stream.without(index), kernels)
        reported += bool(found)
        if isinstance(record, AssumeCommon):
            assert not found.hazards
            assert {(fault.kind, fault.buffer) for fault in found.state_faults} <= {("tracker-stale", record.buffer)}
            continue
        order = Ordering(stream.without(index))
        at = lambda i, index=index: i - (i > index)  # noqa: E731
        races = [(at(i), at(j)) for i, j in pairs if not order.before(at(i), at(j))]
        early = [hazard for hazard in found.hazards if hazard.kind == "early-wait"]
        assert bool(found.hazards) == bool(races or early), f"{record}\n{races}\n{found.report()}"
        for hazard in found.hazards:
            assert hazard.kind == "early-wait" or (hazard.first, hazard.second) in races
    assert reported


def test_each_record_of_a_streamed_run_is_needed_or_stands_for_no_order(models: Models) -> None:
    """Waits and `assume_common` of layers: every one. Signals: where the next one cannot stand in for it."""
    device = run(models, "streaming", announced)
    stream, kernels = device.stream, device.kernels
    running = [i for i, r in enumerate(stream) if is_sync(r) and r.where.startswith(streaming.__file__ or "")]
    last_consumed = {i for i in running if isinstance(stream[i], Signal)}
    needed = [i for i in running if isinstance(stream[i], (Wait, AssumeCommon))]
    assert len(needed) == 2 * LAYERS * 3 + (2 * LAYERS - 3)
    for index in needed:
        found = check_stream(stream.without(index), kernels)
        record = stream[index]
        if isinstance(record, AssumeCommon):
            [fault] = found.state_faults
            assert fault.kind == "tracker-stale" and fault.buffer == record.buffer
            continue
        hazard = found.hazards[0]
        assert isinstance(record, Wait) and hazard.missing is not None
        assert (hazard.missing.waiter, hazard.missing.fence, hazard.missing.value) == (
            record.queue, record.fence, record.value,
        )  # fmt: skip
        report = hazard.report()
        assert hazard.first_record.where in report and hazard.second_record.where in report
        assert f"{record.queue} queue has to wait for {record.fence} >= {record.value}" in report
    # Nobody waits for the last of these: the slots are not filled again.
    for index in sorted(last_consumed)[:-3]:
        [hazard, *_] = check_stream(stream.without(index), kernels).hazards
        assert hazard.kind == "early-wait" and hazard.missing is not None
        assert hazard.missing.fence == stream[index].fence


def test_a_missing_signal_of_a_copy_is_late_but_no_race(models: Models) -> None:
    """The next value stands in for it: the direct queue waits for a later upload, and less overlaps."""
    device = run(models, "streaming", announced)
    stream = device.stream
    signals = [i for i, r in enumerate(stream) if isinstance(r, Signal) and r.fence == "copied.1"]
    full = Ordering(stream)
    for index in signals[:-1]:
        assert not check_stream(stream.without(index), device.kernels)
        order = Ordering(stream.without(index))
        touching = [i for i, *_ in accesses(stream, device.kernels)]
        at = lambda i, index=index: i - (i > index)  # noqa: E731
        assert all(order.before(at(i), at(j)) for i, j in combinations(touching, 2) if full.before(i, j))
    assert check_stream(stream.without(signals[-1]), device.kernels)


def computes_and_uploads(stream: CommandStream) -> tuple[list[int], list[list[int]]]:
    """The records of each step's kernel, and of each step's copies."""
    computes = [i for i, r in enumerate(stream) if isinstance(r, Dispatch) and r.kernel == "decoder_layer"]
    copies = [i for i, r in enumerate(stream) if isinstance(r, Copy) and r.label.startswith("upload layer")]
    return computes, [copies[i : i + 2] for i in range(0, len(copies), 2)]


@pytest.mark.parametrize("pool", [2, 3, 4, 6])
@pytest.mark.parametrize("host_memory", ["pinned", "staged"])
def test_nothing_orders_an_upload_against_the_layers_computed_meanwhile(
    models: Models, pool: int, host_memory: str
) -> None:
    """Overlap by structure: the upload of step s + pool starts after step s, and may run beside the steps between."""
    device, layers, passes = EmulatedDevice(), 7, 3
    with QwenModel.load_streaming(models.path(tiny(layers)), device, pool, host_memory=host_memory) as model:
        model.begin(passes)
        for _ in range(passes):
            model.forward(PROMPT)
    order = Ordering(device.stream)
    computes, uploads = computes_and_uploads(device.stream)
    assert len(computes) == len(uploads) == passes * layers
    for step in range(passes * layers):
        assert all(order.before(copy, computes[step]) for copy in uploads[step])
        for copy in uploads[step + pool] if step + pool < len(uploads) else ():
            assert order.before(computes[step], copy)
            assert all(order.concurrent(copy, compute) for compute in computes[step + 1 : step + pool])


def test_serial_layers_are_ordered_throughout(models: Models) -> None:
    device = run(models, "serial", announced)
    order = Ordering(device.stream)
    computes, uploads = computes_and_uploads(device.stream)
    assert not any(order.concurrent(copy, compute) for pair in uploads for copy in pair for compute in computes)


# On the source


STATEMENTS = statements(streaming, serial, upload, staging, load, resident, model, rollback)


def verdict(models: Models, opener: str, program: Callable[[QwenModel], None], schedule: str) -> tuple[str, ...]:
    """Every report of one run, or the error that ended it."""
    try:
        device = failed_load(models, schedule) if opener == "failed load" else run(models, opener, program, schedule)
    except DeviceError as error:
        return (f"{type(error).__name__}: {error}",)
    return tuple(found.report() for found in (*device.hazards, *device.state_faults))


CASES = [*((opener, program) for opener in OPENERS for program in PROGRAMS), ("failed load", announced)]


def test_the_mutator_finds_the_statements() -> None:
    found = {(s.module, s.verb) for s in STATEMENTS}
    assert len([s for s in STATEMENTS if s.module is streaming]) == 5
    for module, verbs in (
        (streaming, {"wait", "signal", "assume_common"}),
        (serial, {"wait", "signal", "assume_common"}),
        (upload, {"wait", "signal"}),
        (staging, {"wait"}),
        (load, {"wait", "signal", "assume_common"}),
        (model, {"wait", "signal"}),
    ):
        assert verbs <= {verb for owner, verb in found if owner is module}


@pytest.mark.sampled
@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
def test_a_missing_statement_is_reported_the_same_under_every_schedule(models: Models, statement: Statement) -> None:
    with without(statement):
        case = next((case for case in CASES if verdict(models, *case, "timed")), None)
        assert case is not None, f"nothing shows that this is needed: {statement}"
        reports = verdict(models, *case, "timed")
        for schedule in SCHEDULES:
            assert verdict(models, *case, schedule) == reports
    assert verdict(models, *case, "timed") == ()
    for report in reports:
        if report.startswith("EarlyWait"):
            assert statement.verb == "signal"
            continue
        assert report.count(".py:") >= 2, report
        if statement.verb == "assume_common":
            assert report.startswith("stale tracker: "), report
        else:
            assert "  missing  " in report


@pytest.mark.parametrize("statement", [s for s in STATEMENTS if s.module is streaming], ids=str)
def test_a_device_told_to_raise_stops_before_the_race(models: Models, statement: Statement) -> None:
    program = by_hand if statement.function == "close" else announced
    with without(statement), EmulatedDevice(on_hazard="raise") as device, pytest.raises(DeviceError) as caught:
        with QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 3) as model:
            program(model)
        raise AssertionError("nothing was raised")
    assert isinstance(caught.value, (HazardError, EarlyWait)), caught.value


def test_schedules_show_what_a_missing_wait_does(models: Models) -> None:
    """The verdict does not need it, but it can be seen: some order gives NaN or wrong numbers."""
    [wait] = [s for s in STATEMENTS if s.module is streaming and "copied" in s.text]
    right = models.resident(tiny(LAYERS), passes=2)
    wrong = 0
    with without(wait):
        for schedule in SCHEDULES:
            with EmulatedDevice(schedule=schedule) as device:
                logits = models.streamed(tiny(LAYERS), 3, device, right.tokens).logits
                wrong += not all(map(torch.equal, right.logits, logits))
    assert wrong


# Pages

PAGES = statements(transfers, tickets, paged, paged_cache, paged_experts, mixture, experts)
STANDS_IN = {("sent", "self.arrived.signal()"), ("gone", "self.saved.signal()")}
"""Signals after copies: without them the ticket is given out when somebody first waits for it."""


def page_verdict(models: Models, case: Callable[[Models, str], EmulatedDevice], schedule: str) -> tuple[str, ...]:
    """Every report of one run, or the error that ended it, or what is in flight at its end."""
    try:
        device = case(models, schedule)
    except (DeviceError, InFlight) as error:
        return (f"{type(error).__name__}: {error}",)
    return tuple(found.report() for found in (*device.hazards, *device.state_faults))


def test_the_mutator_finds_the_statements_of_pages() -> None:
    found = {(s.module, s.verb) for s in PAGES}
    assert len([s for s in PAGES if s.module is transfers]) == 12
    for module, verbs in (
        (tickets, {"signal", "wait"}),
        (paged, {"wait_idle"}),
        (paged_cache, {"wait_idle"}),
        (paged_experts, {"wait_idle"}),
        (mixture, {"signal", "wait", "wait_idle"}),
        (experts, {"wait_idle"}),
    ):
        assert verbs <= {verb for owner, verb in found if owner is module}


@pytest.mark.parametrize("case", PAGE_CASES, ids=lambda case: case.__name__)
def test_nothing_is_reported_of_pages_and_nothing_is_in_flight_at_the_end(models: Models, case) -> None:
    assert page_verdict(models, case, "random(9)") == ()


@pytest.mark.sampled
@pytest.mark.parametrize("statement", PAGES, ids=str)
def test_a_missing_statement_of_pages_is_reported_the_same_under_every_schedule(
    models: Models, statement: Statement
) -> None:
    with without(statement):
        case = next((case for case in PAGE_CASES if page_verdict(models, case, "timed")), None)
        if (statement.function, statement.text) in STANDS_IN:
            assert case is None
            return
        assert case is not None, f"nothing shows that this is needed: {statement}"
        reports = page_verdict(models, case, "timed")
        for schedule in SCHEDULES[1:8]:
            assert page_verdict(models, case, schedule) == reports
