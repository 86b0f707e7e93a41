"""The order of a benchmark: the card's figures, every residency at every workload, files, peers; then the ratios."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.bench.calibrate import measure_link, measure_pinned_rate, measure_spec
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.encoded_store import EncodedStore
from xinfer_lab.bench.entries import (
    Entry,
    budget_plan,
    compressed_entry,
    pageable_entry,
    planned_entry,
    resident_entry,
    serial_entry,
    streaming_entry,
)
from xinfer_lab.bench.files import file_rows
from xinfer_lab.bench.measure import Logits, Workload, measure_model, predict_model, row_of
from xinfer_lab.bench.peers import PEERS, Peer, installed, measure_peer
from xinfer_lab.bench.ratios import ratios
from xinfer_lab.bench.rows import Report, Row
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import DeviceError
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.errors import RequestError

__all__ = ["Settings", "machine", "run_suite", "workloads"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to run: decode steps after ``prompt`` tokens, prefills of ``prefills`` tokens, pools of ``pools`` slots, a
    ``budget`` in bytes for what is planned (None: nothing is), the ``codecs`` to stream and plan with, what others do
    (``peers``), the naive way (``pageable``), and a checkpoint of ``file_layers`` layers at ``directory`` (0: none).
    """

    decode: int = 5
    prompt: int = 128
    prefills: tuple[int, ...] = (8192,)
    prefill_passes: int = 2
    pools: tuple[int, ...] = (2, 3)
    budget: int | None = None
    codecs: tuple[str, ...] = ("4bit", "3bit")
    peers: tuple[str, ...] = tuple(peer.name for peer in PEERS)
    pageable: bool = True
    file_layers: int = 0
    directory: Path = Path("bench/checkpoint")


def workloads(settings: Settings) -> list[Workload]:
    """Decoding first, then the prefills."""
    decode = Workload(1, settings.decode, settings.prompt)
    return [decode, *(Workload(tokens, settings.prefill_passes) for tokens in settings.prefills)]


def machine(device: torch.device) -> dict[str, str]:
    """What was measured on, and with what."""
    return {
        "gpu": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d"),
    }


class _Suite:
    def __init__(
        self, config: Qwen2Config, settings: Settings, device: torch.device, say: Callable[[Row], None]
    ) -> None:
        self.config, self.settings, self.device, self._say = config, settings, device, say
        self.rows: list[Row] = []
        self.setup: dict[str, float] = {}
        self.reference: dict[str, Logits] = {}
        self.resident: dict[str, float] = {}
        self.link = 0.0

    def note(self, row: Row) -> None:
        self.rows.append(row)
        self._say(row)

    def measure(self, entry: Entry, store: LayerStore, spec: GpuSpec, which: Sequence[Workload]) -> None:
        for workload in which:
            try:
                measured = measure_model(
                    store, entry.real(workload), workload, lambda: CudaDevice(self.device.index or 0, **entry.options)
                )
                predicted = predict_model(self.config, entry.sized(workload), workload, spec)
            except (DeviceError, RequestError) as error:
                self.note(Row(name=entry.name, workload=workload.name, note=str(error).splitlines()[0]))
                continue
            reference = self.reference.setdefault(workload.name, measured.logits)
            row = row_of(entry.name, workload, measured, reference, predicted=predicted)
            assert row.timing is not None
            resident = self.resident.setdefault(workload.name, row.timing.median)
            link = (row.moved or 0) / self.link
            self.note(dataclasses.replace(row, bound=max(resident, link)))

    def measure_peers(self, store: LayerStore, peers: Sequence[Peer], which: Sequence[Workload], kept: int) -> None:
        for peer in peers:
            for workload in which:
                fewer = _fewer(workload) if peer.pageable else workload
                try:
                    measured = measure_peer(peer, store, fewer, self.device, kept)
                except Exception as error:  # it is not ours to mend, and the other rows shall not be lost
                    said = (str(error).splitlines() or [""])[0]
                    self.note(
                        Row(name=peer.name, workload=workload.name, peer=True, note=f"{type(error).__name__}: {said}")
                    )
                    continue
                key = f"peers {workload.name}"
                reference = self.reference.setdefault(key, measured.logits)
                self.note(row_of(peer.name, workload, measured, reference, peer=True))


def run_suite(
    config: Qwen2Config, settings: Settings, device: torch.device, say: Callable[[Row], None] = lambda row: None
) -> Report:
    """Measure everything; ``say(row)`` hears each row as soon as it is there. Takes minutes; host memory for all layers
    is pinned meanwhile."""
    torch.cuda.set_device(device)
    suite = _Suite(config, settings, device, say)
    with torch.cuda.device(device):
        link = measure_link(device)
        spec = measure_spec(config, device, link)
        weights = DrawnWeights(config, device)
        start = time.perf_counter()
        store = LayerStore(weights)
        suite.setup["layers drawn, and into pinned memory"] = time.perf_counter() - start
        try:
            _measure_all(suite, store, weights, spec, link)
        finally:
            store.close()
        if settings.file_layers:
            for row in file_rows(config, settings.directory, settings.file_layers, settings.decode, device):
                suite.note(row)
    report = Report(
        machine=machine(device),
        settings={**dataclasses.asdict(settings), "directory": str(settings.directory), "model": _describe(config)},
        link=link,
        spec=dataclasses.asdict(spec),
        rows=suite.rows,
        setup=suite.setup,
    )
    return dataclasses.replace(report, ratios=ratios(report))


def _measure_all(
    suite: _Suite, store: LayerStore, weights: DrawnWeights, spec: GpuSpec, link: dict[str, float]
) -> None:
    settings, which = suite.settings, workloads(suite.settings)
    decode, *prefills = which
    # The least that is possible is the same for a row that makes poor use of the link.
    suite.link = spec.link_bandwidth
    link["to device, pinned, 1024 MiB, before the rows"] = measure_pinned_rate(suite.device)
    suite.measure(resident_entry(), store, spec, which)
    for entry in _entries(suite, store, weights):
        suite.measure(entry, store, spec, which if entry.hides else [decode, *prefills[:1]])
    # A link that others use too changes: then ratios of rows measured far apart say little.
    link["to device, pinned, 1024 MiB, after the rows"] = measure_pinned_rate(suite.device)
    kept = 0
    if settings.budget is not None:
        with contextlib.suppress(RequestError):
            kept = budget_plan(suite.config, decode, settings.budget, _reserved(suite.device)).resident
    peers = [peer for peer in PEERS if peer.name in settings.peers and installed(peer)]
    suite.measure_peers(store, [peer for peer in peers if not peer.pageable], [decode, *prefills[:1]], kept)
    if settings.pageable:
        store.unpin()
        slow = dataclasses.replace(spec, link_bandwidth=link["to device, pageable, 1024 MiB"])
        suite.measure(pageable_entry(store), store, slow, [_fewer(workload) for workload in (decode, *prefills[:1])])
        suite.measure_peers(store, [peer for peer in peers if peer.pageable], [decode, *prefills[:1]], kept)


def _entries(suite: _Suite, store: LayerStore, weights: DrawnWeights) -> Iterator[Entry]:
    budget, reserved = suite.settings.budget, _reserved(suite.device)
    yield serial_entry(store)
    for pool in suite.settings.pools:
        if pool < suite.config.num_hidden_layers:
            yield streaming_entry(store, pool)
    if budget is not None:
        yield planned_entry(store, budget, reserved)
    for codec in suite.settings.codecs if suite.config.dtype == torch.bfloat16 else ():
        start = time.perf_counter()
        encoded = EncodedStore(weights, codec)
        suite.setup[f"layers encoded, {codec}, on the GPU"] = time.perf_counter() - start
        try:
            yield compressed_entry(store, encoded, None, reserved)
            if budget is not None:
                yield compressed_entry(store, encoded, budget, reserved)
        finally:
            encoded.close()


def _fewer(workload: Workload) -> Workload:
    """For what takes seconds a pass: two passes, and none to warm up."""
    return dataclasses.replace(workload, passes=min(workload.passes, 2), warm=False)


def _reserved(device: torch.device) -> dict[str, int]:
    with CudaDevice(device.index or 0) as opened:
        return dict(opened.memory.use().holders)


def _describe(config: Qwen2Config) -> dict[str, Any]:
    return {
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "intermediate": config.intermediate_size,
        "dtype": str(config.dtype).removeprefix("torch."),
    }
