"""Several links: the same rows on one card and with the layers over all of them, and what the links do together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from xinfer_lab.bench.calibrate import measure_link, measure_spec
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.encoded_store import EncodedStore
from xinfer_lab.bench.entries import compressed_entry, planned_entry, resident_entry, streaming_entry
from xinfer_lab.bench.link_targets import LINKS
from xinfer_lab.bench.rows import Report, Row
from xinfer_lab.bench.run import Run, Settings, machine
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.bench.suite import reserved, workloads
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.pinned import PinnedMemory
from xinfer_lab.qwen2.config import Qwen2Config

__all__ = ["run_links"]

_BYTES = 2**28
_REPEATS = 5


def run_links(
    config: Qwen2Config,
    settings: Settings,
    cards: Sequence[int],
    say: Callable[[Row], None] = lambda row: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Measure on the first of ``cards``, and over all of them; otherwise as `xinfer_lab.bench.suite.run_suite`.

    The ``budget`` is one card's; of several, each has its share. Raises `CudaUnavailable` for cards that do not go
    together.
    """
    with CudaDevice(cards):
        pass
    device, count = torch.device("cuda", cards[0]), len(cards)
    torch.cuda.set_device(device)
    run = Run(config, settings, device, say, save, cards)
    run.machine = machine(device)
    run.described |= {"suite": LINKS, "cards": list(cards)}
    weights = DrawnWeights(config, device)
    start = time.perf_counter()
    store = LayerStore(weights)
    run.setup["layers drawn, and into pinned memory"] = time.perf_counter() - start
    try:
        _calibrate(run)
        which = workloads(settings)
        run.measure(resident_entry(), store, which)
        held = reserved(device)
        for pool in settings.pools:
            for over in (1, count):
                run.measure(streaming_entry(store, pool, over), store, which)
        if settings.budget is not None:
            for over in (1, count):
                run.measure(planned_entry(store, settings.budget // over, held, over), store, which[:1])
        for encoded in _encoded(run, weights):
            run.measure(compressed_entry(store, encoded, None, held, count), store, which[:1])
    finally:
        store.close()
    return run.report(complete=True)


def _encoded(run: Run[Settings], weights: DrawnWeights) -> Iterator[EncodedStore]:
    for codec in run.settings.codecs if run.config.dtype == torch.bfloat16 else ():
        with run.row(f"compressed {codec}", "encoding"):
            encoded = EncodedStore(weights, codec)
            try:
                yield encoded
            finally:
                encoded.close()


def _calibrate(run: Run[Settings]) -> None:
    with run.row("the link", "calibration"):
        run.link |= measure_link(run.device)
        run.spec = dataclasses.replace(run.spec, link_bandwidth=run.link["to device, pinned, 1024 MiB"])
    with run.row("the links together", "calibration"):
        run.link |= _together(run.cards)
    with run.row("the card", "calibration"):
        spec = measure_spec(run.config, run.device, run.link, run.settings.prefills or (8192,))
        with CudaDevice(run.cards) as opened:
            reach = opened.peers
        run.spec = dataclasses.replace(spec, peer_bandwidth=run.link["card to card, 256 MiB"] if reach else 0.0)
        run.calibrated = True


def _together(cards: Sequence[int]) -> dict[str, float]:
    """Bytes a second: to all cards at once from pinned memory, and from the first to the last."""
    ends = [torch.empty(_BYTES, dtype=torch.uint8, device=f"cuda:{card}") for card in cards]
    homes = [PinnedMemory(_BYTES) for _ in cards]
    streams = [torch.cuda.Stream(end.device) for end in ends]

    def to_all() -> None:
        for end, home, stream in zip(ends, homes, streams, strict=True):
            with torch.cuda.stream(stream):
                for _ in range(4):
                    end.copy_(home.tensor, non_blocking=True)

    def across() -> None:
        for _ in range(4):
            ends[-1].copy_(ends[0], non_blocking=True)

    found = {
        "to all cards at once, pinned, 256 MiB": 4 * len(cards) * _BYTES / _host_seconds(to_all, cards),
        "card to card, 256 MiB": 4 * _BYTES / _host_seconds(across, cards),
    }
    for home in homes:
        home.close()
    return found


def _host_seconds(work: Callable[[], object], cards: Sequence[int]) -> float:
    """The fastest of some runs by the host's clock: no event measures two cards."""
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        for card in cards:
            torch.cuda.synchronize(card)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
