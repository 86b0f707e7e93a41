"""What a benchmark found: rows of passes, each with its spread, bytes, memory and the plan's prediction."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "BOTH_WAYS",
    "COPIES",
    "EXPERTS_DECODE",
    "FETCHED_AHEAD",
    "FIRST_TOKEN",
    "FROM_FILE",
    "IN_A_ROW",
    "PAGED_HITS",
    "RECOMPUTED",
    "Report",
    "Row",
    "Timing",
    "is_steady",
]  # fmt: skip

FIRST_TOKEN = "from file to first token"
"""The workload: from opening a checkpoint, its pages in the system's file cache, to the logits of a prompt."""

FROM_FILE = "decode, out of the file"
"""The workload: decode steps whose layers come out of a checkpoint's files."""

COPIES = "page copies"
"""The workload: pages over the link, and nothing else."""

IN_A_ROW, BOTH_WAYS = "pages in a row, one call", "pages both ways at once"
"""Rows of `COPIES`."""

EXPERTS_DECODE = "decode, experts"
"""The workload: decode steps of a model with experts."""

RECOMPUTED = "the prefix computed again"
"""The row: a decode step whose cache was thrown away."""

FETCHED_AHEAD, PAGED_HITS = "paged, fetched ahead, lru", "paged, fetched ahead, belady"
"""Rows of layers in a page pool: every layer is moved in every pass; as many as can be stay."""

STEADY = 0.03
"""A row whose passes differ by less than this share of their median is steady: its prediction is judged."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of the passes of one kind: ``median``, ``fastest``, ``slowest``."""

    median: float
    fastest: float
    slowest: float
    passes: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """The timing of ``seconds``, of which there is at least one."""
        return cls(statistics.median(seconds), min(seconds), max(seconds), len(seconds))

    @property
    def spread(self) -> float:
        """How far the passes lie apart, as a share of their median."""
        return (self.slowest - self.fastest) / self.median if self.median else 0.0


def is_steady(timing: Timing) -> bool:
    """Whether there are several passes and they differ by less than 3 %."""
    return timing.passes > 1 and timing.spread < STEADY


@dataclass(frozen=True, kw_only=True)
class Row:
    """One residency at one workload.

    ``moved``: bytes of weights that a pass moves over the link (None: not known). ``peak``, ``planned``: bytes of
    device memory at most in use, as the allocator saw it and as the plan had it. ``difference``: the largest absolute
    difference of the logits from those of the resident run (NaN where bytes differ without one; None where there is
    nothing to compare with). ``predicted``: seconds by the virtual clock; ``bound``: the slower of the link
    and the resident run; ``card``: what the card takes for the bytes and FLOPs of a pass, at its measured rates;
    ``link``: bytes a second of the pinned link as measured just before and just after the row (their mean).
    ``note``: a remark, such as why there is no time (then ``timing`` is None); ``broken``: an unforeseen error
    ended it.
    """

    name: str
    workload: str
    timing: Timing | None = None
    moved: int | None = None
    peak: int | None = None
    planned: int | None = None
    difference: float | None = None
    predicted: float | None = None
    bound: float | None = None
    card: float | None = None
    peer: bool = False
    note: str = ""
    link: float | None = None
    broken: bool = False

    @property
    def failed(self) -> bool:
        """Whether the row is one of ours and its bytes are not those of the resident run: then it is not a result."""
        return not self.peer and self.difference is not None and self.difference != 0

    @property
    def rate(self) -> float | None:
        """Bytes of weights moved a second."""
        return self.moved / self.timing.median if self.moved and self.timing is not None else None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole run. ``machine`` and ``settings`` say what was measured where; ``link`` the link's measurements by name;
    ``spec`` the GPU's measured figures; ``ratios`` what the rows come to; ``targets`` which figures were to be reached
    and whether they were (`xinfer_lab.bench.targets`). ``complete``: the run ended as planned."""

    machine: Mapping[str, str]
    settings: Mapping[str, Any]
    link: Mapping[str, float]
    spec: Mapping[str, Any]
    rows: Sequence[Row]
    setup: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
    targets: Sequence[Mapping[str, Any]] = ()
    complete: bool = True

    @property
    def failed(self) -> bool:
        """Whether one of our rows differs from the resident run's bytes, or ended with an unforeseen error."""
        return any(row.failed or (row.broken and not row.peer) for row in self.rows)

    @property
    def layer_bytes(self) -> int:
        """Bytes of all layers together; 0 if they are not known."""
        return int(self.settings.get("model", {}).get("layer_bytes", 0))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data; NaN differences become the text "nan"."""
        data = dataclasses.asdict(self)
        for row, entry in zip(self.rows, data["rows"], strict=True):
            entry["rate"] = row.rate
            if entry["difference"] is not None and entry["difference"] != entry["difference"]:
                entry["difference"] = "nan"
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`."""
        rows = []
        for entry in data["rows"]:
            fields = {key: value for key, value in entry.items() if key != "rate"}
            if fields["timing"] is not None:
                fields["timing"] = Timing(**fields["timing"])
            if fields["difference"] == "nan":
                fields["difference"] = float("nan")
            rows.append(Row(**fields))
        return cls(**{**data, "rows": rows})

    def find(self, name: str, workload: str) -> Row | None:
        """The row of that name and workload, if it was timed."""
        found = (row for row in self.rows if row.name == name and row.workload == workload and row.timing)
        return next(found, None)
