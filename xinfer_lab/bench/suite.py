"""The order of a benchmark: the card's figures, every residency at every workload, files, peers; then the ratios."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

import torch

from xinfer_lab.bench.calibrate import measure_link, measure_pageable_rate, measure_spec
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.encoded_store import EncodedStore
from xinfer_lab.bench.entries import (
    Entry,
    budget_plan,
    compressed_entry,
    own_entry,
    pageable_entry,
    planned_entry,
    resident_entry,
    serial_entry,
    streaming_entry,
)
from xinfer_lab.bench.files import file_rows
from xinfer_lab.bench.measure import Workload
from xinfer_lab.bench.peers import PEERS, installed
from xinfer_lab.bench.rows import FIRST_TOKEN, Report, Row
from xinfer_lab.bench.run import Run, Settings, fewer, machine
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import SourceFactory

__all__ = ["reserved", "run_suite", "workloads"]

_Own = Callable[[int], SourceFactory] | None


def workloads(settings: Settings) -> list[Workload]:
    """Decoding first, then the prefills."""
    decode = Workload(1, settings.decode, settings.prompt)
    return [decode, *(Workload(tokens, settings.prefill_passes) for tokens in settings.prefills)]


def run_suite(
    config: Qwen2Config,
    settings: Settings,
    device: torch.device,
    say: Callable[[Row], None] = lambda row: None,
    save: Callable[[Report], None] = lambda report: None,
    own: _Own = None,
) -> Report:
    """Measure everything. ``say(row)`` gets each row as soon as it is measured, ``save(report)`` the report so far.
    ``own``: a student's engine, which makes layers for a number of slots.

    Takes minutes; host memory for all layers is pinned meanwhile. A row that fails is noted, and the others go on.
    """
    torch.cuda.set_device(device)
    run = Run(config, settings, device, say, save)
    run.machine = machine(device)
    with torch.cuda.device(device):
        weights = DrawnWeights(config, device)
        start = time.perf_counter()
        store = LayerStore(weights)
        run.setup["layers drawn, and into pinned memory"] = time.perf_counter() - start
        try:
            _calibrate(run)
            _measure_all(run, store, weights, own)
        finally:
            store.close()
    return run.report(complete=True)


def _calibrate(run: Run[Settings]) -> None:
    """The card's own figures. Without them rows are measured, but not predicted."""
    with run.row("the link", "calibration"):
        run.link |= measure_link(run.device)
        run.spec = dataclasses.replace(run.spec, link_bandwidth=run.link["to device, pinned, 1024 MiB"])
    with run.row("the card", "calibration"):
        run.spec = measure_spec(run.config, run.device, run.link, run.settings.prefills or (8192,))
        run.calibrated = True


def _measure_all(run: Run[Settings], store: LayerStore, weights: DrawnWeights, own: _Own) -> None:
    settings, which = run.settings, workloads(run.settings)
    decode, *prefills = which
    kept = 0
    if settings.budget is not None:
        with contextlib.suppress(RequestError):
            for workload in reversed(which):
                # Peers keep the embedding on the GPU.
                plan = budget_plan(run.config, workload, settings.budget, reserved(run.device), host_embedding=False)
                run.ideal[workload.name], kept = plan.moved, plan.resident
    run.link["to device, pinned, 1024 MiB, before the rows"] = run.link_now()
    run.measure(resident_entry(), store, which)
    for entry in _entries(run, store, weights, own):
        run.measure(entry, store, which if entry.hides else [decode, *prefills[:1]])
    # A shared link changes; then ratios of rows measured far apart say little.
    run.link["to device, pinned, 1024 MiB, after the rows"] = run.link_now()
    peers = [peer for peer in PEERS if peer.name in settings.peers and installed(peer)]
    run.measure_peers(store, [peer for peer in peers if not peer.pageable], [decode, *prefills[:1]], kept)
    if settings.file_layers:
        _measure_files(run)
    # Passes that take seconds come last: stop there, and you have the rest.
    if settings.pageable:
        store.unpin()
        layers = [store.bytes(f"stored[{layer}]") for layer in range(min(4, run.config.num_hidden_layers))]
        slow = None
        with run.row("pageable memory", "calibration"):
            slow = run.link["to device, pageable, the layers"] = measure_pageable_rate(run.device, layers)
        entry, few = pageable_entry(store), [fewer(workload) for workload in (decode, *prefills[:1])]
        run.measure(entry, store, few, slow)
        run.measure_peers(store, [peer for peer in peers if peer.pageable], [decode, *prefills[:1]], kept)


def _measure_files(run: Run[Settings]) -> None:
    settings = run.settings
    with run.row("a checkpoint", FIRST_TOKEN):
        run.link_now()
        rows = file_rows(run.config, settings.directory, settings.file_layers, settings.decode, run.device)
        for row in rows:
            run.note(dataclasses.replace(row, link=run.link_now()))


def _entries(run: Run[Settings], store: LayerStore, weights: DrawnWeights, own: _Own) -> Iterator[Entry]:
    budget, held = run.settings.budget, reserved(run.device)
    yield serial_entry(store)
    for pool in run.settings.pools:
        if pool < run.config.num_hidden_layers:
            yield streaming_entry(store, pool)
            if own is not None:
                yield own_entry(own, pool)
    if budget is not None:
        yield planned_entry(store, budget, held)
    for codec in run.settings.codecs if run.config.dtype == torch.bfloat16 else ():
        encoded: EncodedStore | None = None
        with run.row(f"compressed {codec}", "encoding"):
            start = time.perf_counter()
            encoded = EncodedStore(weights, codec)
            run.setup[f"layers encoded, {codec}, on the GPU"] = time.perf_counter() - start
        if encoded is None:
            continue
        try:
            yield compressed_entry(store, encoded, None, held)
            if budget is not None:
                yield compressed_entry(store, encoded, budget, held)
        finally:
            encoded.close()


def reserved(device: torch.device) -> dict[str, int]:
    """What a device on this card holds from the start, by holder."""
    with CudaDevice(device.index or 0) as opened:
        return dict(opened.memory.use().holders)
