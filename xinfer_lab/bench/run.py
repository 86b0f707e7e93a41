"""A benchmark while it runs: its rows, what they are compared with, and the report so far.

Each row is saved as soon as it is measured, and an error ends a row, not the run: time on a GPU is too dear to lose a
whole run to its last row.
"""

from __future__ import annotations

import dataclasses
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import torch

from xinfer_lab.bench.calibrate import measure_pinned_rate, submit_time
from xinfer_lab.bench.entries import RESIDENT, Entry
from xinfer_lab.bench.measure import Logits, Workload, card_seconds, measure_model, predict_model, row_of
from xinfer_lab.bench.peers import PEERS, Peer, PeerModel
from xinfer_lab.bench.ratios import ratios
from xinfer_lab.bench.rows import Report, Row
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.bench.targets import verdicts
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import DeviceError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["Run", "Settings", "fewer", "machine"]

_S = TypeVar("_S")
"""The settings of a run, a dataclass of plain values."""

_PATIENCE = 6.0
"""Seconds of timed passes after which a slow row has no further one."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to run: decode steps after ``prompt`` tokens, prefills of ``prefills`` tokens, pools of ``pools`` slots, a
    ``budget`` in bytes for what is planned (None: nothing is), the ``codecs`` to stream and plan with, what others do
    (``peers``), the naive way (``pageable``), and a checkpoint of ``file_layers`` layers (0: none), written
    below ``directory`` and deleted again.
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
    directory: Path = Path("bench")


def machine(device: torch.device) -> dict[str, str]:
    """The machine and the software of the measurement."""
    return {
        "gpu": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d"),
    }


class _Attempt:
    def __init__(self, run: Run[Any], row: Row) -> None:
        self._run, self._row = run, row

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        known = isinstance(error, (DeviceError, RequestError))
        said = (str(error).splitlines() or [""])[0]
        if not known:
            traceback.print_exception(error)
            said = f"{type(error).__name__}: {said}"
        self._run.note(dataclasses.replace(self._row, note=said, broken=not known))
        return True


class Run(Generic[_S]):
    """A run with ``settings`` so far: its rows, what they are held against, and the report that they make."""

    def __init__(
        self,
        config: Qwen2Config,
        settings: _S,
        device: torch.device,
        say: Callable[[Row], None],
        save: Callable[[Report], None] = lambda report: None,
        cards: Sequence[int] = (),
    ) -> None:
        self.config, self.settings, self.device, self._say, self._save = config, settings, device, say, save
        self.cards = tuple(cards) or (device.index or 0,)
        self.described: dict[str, Any] = {"model": _describe(config)}
        self.rows: list[Row] = []
        self.setup: dict[str, float] = {}
        self.link: dict[str, float] = {}
        self.spec = dataclasses.replace(GPU_SPECS["h200"], name="not measured")
        self.calibrated = False
        self.machine: Mapping[str, str] = {}
        self.reference: dict[str, Logits] = {}
        self.resident: dict[str, float] = {}
        self.ideal: dict[str, int] = {}
        self._rate: float | None = None

    def start(self, config: Qwen2Config, *workloads: str) -> None:
        """From here on rows are of another model, at ``workloads``, and compared with its own resident run."""
        self.config = config
        self.reference.clear()
        self.resident.clear()
        self.described.setdefault("models", {}).update(dict.fromkeys(workloads, _describe(config)))

    def note(self, row: Row) -> None:
        """Keep ``row``, print it, and save the report so far, so that no measurement is lost."""
        self.rows.append(row)
        self._say(row)
        self._save(self.report(complete=False))

    def report(self, *, complete: bool) -> Report:
        """The report of the rows so far."""
        values = dataclasses.asdict(cast(Any, self.settings)).items()
        settings = {name: str(value) if isinstance(value, Path) else value for name, value in values} | self.described
        report = Report(
            machine=dict(self.machine),
            settings={**settings, "ideal_peer_moves": dict(self.ideal)},
            link=dict(self.link),
            spec=dataclasses.asdict(self.spec),
            rows=tuple(self.rows),
            setup=dict(self.setup),
            complete=complete,
        )
        found = verdicts(report)
        return dataclasses.replace(report, ratios=ratios(report), targets=[dataclasses.asdict(one) for one in found])

    def row(self, name: str, workload: str, *, peer: bool = False) -> _Attempt:
        """A row, measured inside this ``with`` block. An error ends the row, not the run; the note says what it was."""
        return _Attempt(self, Row(name=name, workload=workload, peer=peer))

    def link_now(self) -> float:
        """The link's rate as the mean of now and of the last time that it was asked for."""
        before, self._rate = self._rate, measure_pinned_rate(self.device)
        return self._rate if before is None else (before + self._rate) / 2

    def _submits_alone(self, entry: Entry, workload: Workload) -> bool:
        """Whether a row's passes take as long as the host takes to submit them: nothing is moved, little computed."""
        return self.calibrated and entry.name == RESIDENT and workload.tokens == 1

    def measure(self, entry: Entry, store: ModelWeights, which: Sequence[Workload], link: float | None = None) -> None:
        """A row for each workload. ``link``: the rate that its copies are predicted with, where it is not pinned."""
        for workload in which:
            with self.row(entry.name, workload.name):
                self.link_now()
                submitting = []
                if self._submits_alone(entry, workload):
                    submitting.append(submit_time(self.config, self.device))
                host = entry.host_embedding(workload)
                measured = measure_model(
                    store, entry.real(workload), workload,
                    lambda: CudaDevice(self.cards[: entry.cards], **entry.options), host_embedding=host,
                    arguments=entry.arguments(workload), note=entry.note, on_demand=entry.on_demand,
                )  # fmt: skip
                pinned = self.link_now()
                predicted = None
                if self.calibrated:
                    spec = dataclasses.replace(self.spec, link_bandwidth=pinned if link is None else link)
                    if submitting:
                        # A machine's cores are faster at one time than at another, as its link is.
                        submitting.append(submit_time(self.config, self.device))
                        spec = dataclasses.replace(spec, submit_time=sum(submitting) / 2)
                    sized = entry.sized(workload)
                    predicted = predict_model(
                        self.config, sized, workload, spec, host_embedding=host, arguments=entry.arguments(workload),
                        cards=entry.cards,
                    )  # fmt: skip
                if entry.name == RESIDENT:
                    self.reference[workload.name] = measured.logits
                row = row_of(
                    entry.name, workload, measured, self.reference.get(workload.name), predicted=predicted
                )  # fmt: skip
                assert row.timing is not None
                if entry.name == RESIDENT:
                    self.resident[workload.name] = row.timing.median
                card = (
                    card_seconds(self.config, workload, self.spec, entry.arguments(workload))
                    if self.calibrated
                    else None
                )
                # The least that is possible is the same for a row that makes poor use of the link.
                bound = max(self.resident.get(workload.name, 0.0), (row.moved or 0) / pinned / entry.cards)
                self.note(dataclasses.replace(row, bound=bound, card=card, link=pinned))

    def measure_peers(self, store: LayerStore, peers: Sequence[Peer], which: Sequence[Workload], kept: int) -> None:
        """What others do: a row for each of ``peers`` at each workload."""
        for peer in peers:
            opened: PeerModel | None = None
            with self.row(peer.name, which[0].name, peer=True):
                opened = PeerModel(peer, store, self.device, kept)
                self.setup[f"{peer.name}, set-up"] = opened.setup
            if opened is None:
                continue
            for workload in which:
                if peer.compiled and workload.tokens > 1:
                    continue
                with self.row(peer.name, workload.name, peer=True):
                    self.link_now()
                    measured = opened.measure(fewer(workload) if peer.pageable else _patient(workload))
                    key = f"peers {workload.name}"
                    if peer is PEERS[0]:
                        self.reference[key] = measured.logits
                    row = row_of(peer.name, workload, measured, self.reference.get(key), peer=True)
                    self.note(dataclasses.replace(row, link=self.link_now()))
            with self.row(peer.name, "closing", peer=True):
                opened.close()


def fewer(workload: Workload) -> Workload:
    """For passes that take seconds: two of them, or one if it takes very long, and none to warm up."""
    return dataclasses.replace(workload, passes=min(workload.passes, 2), warm=False, limit=_PATIENCE)


def _patient(workload: Workload) -> Workload:
    """For peers: all passes, unless they take too long to wait for."""
    return dataclasses.replace(workload, limit=_PATIENCE)


def _describe(config: Qwen2Config) -> dict[str, Any]:
    return {
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "intermediate": config.intermediate_size,
        "dtype": str(config.dtype).removeprefix("torch."),
        "layer_bytes": sum(layer_layout(config, layer).weight_nbytes for layer in range(config.num_hidden_layers)),
    }
