"""A benchmark of pages: copies over the link, experts, a cache, and a model of 2.6 times the budget; in one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import torch

from xinfer_lab.bench.calibrate import measure_link
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.entries import resident_entry
from xinfer_lab.bench.measure import Workload
from xinfer_lab.bench.page_copies import PageCopies, copy_rows
from xinfer_lab.bench.page_models import cache_entry, expert_entries, naive_entry, paged_entries
from xinfer_lab.bench.page_targets import PAGES
from xinfer_lab.bench.rows import COPIES, EXPERTS_DECODE, RECOMPUTED, Report, Row
from xinfer_lab.bench.run import Run, fewer, machine
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.errors import RequestError

__all__ = ["PARTS", "PageSettings", "run_pages"]

PARTS = ("copies", "experts", "cache", "offload")
"""What is measured, in this order."""

EXPERTS = SyntheticSpec(
    layers=12, hidden=2048, heads=16, kv_heads=16, intermediate=5632, vocab=32000, dtype="bfloat16", context=8192,
    experts=60, experts_per_token=4, expert_intermediate=1408,
)  # fmt: skip
"""Half of the layers of Qwen1.5-MoE-A2.7B's shape, and a smaller vocabulary."""

CACHED = SyntheticSpec(
    layers=8, hidden=3584, heads=28, kv_heads=4, intermediate=18944, vocab=32000, dtype="bfloat16", context=131072
)
"""Layers of Qwen2.5-7B's shape."""

OFFLOADED = SyntheticSpec(
    layers=16, hidden=5120, heads=40, kv_heads=8, intermediate=27648, vocab=32000, dtype="bfloat16", context=32768
)
"""Layers of Qwen2.5-32B's shape."""


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """What to run: ``parts`` of `PARTS`, with pages of ``page_bytes``.

    Copies of ``frames`` pages, ``rounds`` times. A model with ``experts``, of which the pool holds ``expert_share``,
    over ``expert_steps`` decode steps. A ``cached`` model after ``prefix`` tokens, of whose cache the pool holds
    ``cache_share``. An ``offloaded`` model whose resident run takes ``over`` times the device memory that it is given,
    over decode steps and a prefill of ``prefill`` tokens (0: none). ``steps``: decode steps of the last two.
    """

    suite: str = PAGES
    parts: tuple[str, ...] = PARTS
    page_bytes: int = PAGE_BYTES
    frames: int = 1024
    rounds: int = 5
    experts: SyntheticSpec = EXPERTS
    expert_share: float = 0.5
    expert_steps: int = 24
    cached: SyntheticSpec = CACHED
    prefix: int = 65536
    cache_share: float = 1 / 3
    offloaded: SyntheticSpec = OFFLOADED
    over: float = 2.6
    prefill: int = 4096
    steps: int = 5


_Run = Run[PageSettings]


def run_pages(
    settings: PageSettings,
    device: torch.device,
    say: Callable[[Row], None] = lambda row: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Measure the parts of ``settings``; ``say`` and ``save`` as `xinfer_lab.bench.suite.run_suite` has them. Takes a
    few minutes. A row that fails is noted, and the others go on."""
    torch.cuda.set_device(device)
    run = Run(settings.offloaded.config(), settings, device, say, save)
    run.machine = machine(device)
    parts = {"copies": _copies, "experts": _experts, "cache": _cache, "offload": _offload}
    with torch.cuda.device(device):
        with run.row("the link", "calibration"):
            run.link |= measure_link(device)
            run.spec = dataclasses.replace(run.spec, link_bandwidth=run.link["to device, pinned, 1024 MiB"])
        for name in PARTS:
            if name in settings.parts:
                with run.row(name, "set-up"):
                    parts[name](run)
    return run.report(complete=True)


def _copies(run: _Run) -> None:
    settings = run.settings
    shape = PageCopies(settings.frames, settings.page_bytes, settings.rounds)
    with run.row("pages", COPIES):
        run.link_now()
        for row in copy_rows(lambda: CudaDevice(run.device.index or 0), shape, run.link_now):
            run.note(row)


def _experts(run: _Run) -> None:
    settings, config = run.settings, run.settings.experts.config()
    workload = Workload(1, settings.expert_steps, 8, label=EXPERTS_DECODE)
    run.start(config, workload.name)
    weights = DrawnWeights(config, run.device)
    for entry in (resident_entry(), *expert_entries(config, settings.expert_share, settings.page_bytes)):
        run.measure(entry, weights, [workload])


def _cache(run: _Run) -> None:
    settings, config = run.settings, run.settings.cached.config()
    workload = Workload(1, settings.steps, settings.prefix, label=f"decode after {settings.prefix} tokens")
    prefill = Workload(settings.prefix, 2)
    run.start(config, workload.name, prefill.name)
    weights = DrawnWeights(config, run.device)
    resident = resident_entry()
    run.measure(resident, weights, [workload, prefill])
    run.measure(cache_entry(config, settings.cache_share, settings.page_bytes), weights, [workload])
    # Without a cache a step is a prefill of all that came before.
    for row in run.rows:
        if row.workload == prefill.name and row.name == resident.name and row.timing is not None:
            again = dataclasses.replace(row, name=RECOMPUTED, workload=workload.name, difference=None, bound=None)
            run.note(dataclasses.replace(again, note=f"as measured: {prefill.name}, everything resident"))
            break


def _offload(run: _Run) -> None:
    settings, config = run.settings, run.settings.offloaded.config()
    which = [Workload(1, settings.steps, 128, label="decode, offloaded")]
    if settings.prefill:
        which.append(Workload(settings.prefill, 2, label=f"prefill {settings.prefill}, offloaded"))
    run.start(config, *(workload.name for workload in which))
    store = LayerStore(DrawnWeights(config, run.device))
    try:
        run.measure(resident_entry(), store, which)
        peak = next((row.planned for row in run.rows if row.workload == which[0].name and row.planned), None)
        if peak is None:
            raise RequestError("without a resident run there is no budget that it takes more than")
        budget = int(peak / settings.over)
        run.described["offload"] = {"resident_bytes": peak, "budget": budget}
        with CudaDevice(run.device.index or 0) as opened:
            reserved = dict(opened.memory.use().holders)
        for entry in (
            naive_entry(store, budget, pin=True),
            *paged_entries(store, budget, reserved, settings.page_bytes),
        ):
            run.measure(entry, store, which)
        # What takes seconds a pass comes last, and unpins the layers.
        store.unpin()
        run.measure(naive_entry(store, budget, pin=False), store, [fewer(workload) for workload in which])
    finally:
        store.close()
