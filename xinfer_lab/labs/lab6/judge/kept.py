"""Lab 6: the plan behind a run, read from its command stream alone; or as it was decided, where nothing was run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Copy, Dispatch, HostWrite
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.labs.lab6.judge.race_case import AskedCase

__all__ = ["Kept", "decided", "kept_by"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A plan: the layers that stream, bytes that a steady pass moves, slots, form and tier.

    ``uneven``: some streamed layers lie more than one layer farther apart than others.
    """

    places: tuple[int, ...]
    moved: float
    slots: int
    coded: bool
    staged: bool
    uneven: bool

    @property
    def streamed(self) -> int:
        """How many layers stream."""
        return len(self.places)

    @property
    def form(self) -> str:
        """The form's name."""
        return "coded" if self.coded else "plain"

    @property
    def host(self) -> str:
        """The tier's name."""
        return "staged" if self.staged else "pinned"

    def __str__(self) -> str:
        if not self.places:
            return f"all layers stay, {self.form}"
        slots = "1 slot" if self.slots == 1 else f"{self.slots} slots"
        moved = format_bytes(int(self.moved))
        return f"{self.streamed} {self.form} layers stream through {slots}, {self.host}, {moved} a pass"


def kept_by(evidence: Evidence) -> Kept:
    """The plan, worked out from the stream alone; where nothing was run, as it was decided."""
    return decided(evidence) if isinstance(evidence.case, AskedCase) else _from_stream(evidence)


def decided(evidence: Evidence) -> Kept:
    """The plan that was returned for an `AskedCase`. Raises ValueError where none was noted."""
    match [call.values for call in evidence.calls]:
        case [("plain" | "coded" as form, "pinned" | "staged" as host, int(slots), *noted)]:
            needs = evidence.case.needs
            layer = needs["forms"].get(form, {}).get("layer_bytes", 0)
            own = needs.get("uneven", {}).get("layer_bytes", [layer] * needs["layers"])
            places = tuple(place for place in noted if isinstance(place, int) and 0 <= place < needs["layers"])
            if len(places) == len(noted):
                moved = sum(own[place] for place in places)
                return Kept(places, moved, slots, form == "coded", host == "staged", False)
    raise ValueError("no plan was noted")


def _from_stream(evidence: Evidence) -> Kept:
    first, steps = evidence.first_pass, evidence.case.steps
    copies = [
        record
        for record in evidence.stream
        if isinstance(record, Copy) and record.queue == "copy" and record.dst.buffer.startswith("slot[")
    ]
    slots = {re.match(r"slot\[(\d+)\]", copy.dst.buffer).group(1) for copy in copies}  # type: ignore[union-attr]
    after = [record for index, record in enumerate(evidence.stream) if index >= first]
    coded = any(isinstance(record, Dispatch) and record.kernel == "decode_exponents" for record in after)
    staged = any(isinstance(r, HostWrite) and r.source.name not in evidence.stream.inputs for r in after)
    places = _streamed_layers(evidence)
    moved = sum(copy.dst.size for copy in copies) / steps
    ahead = [*places[1:], places[0] + evidence.case.layers] if places else []
    gaps = [b - a for a, b in zip(places, ahead, strict=True)]
    return Kept(tuple(places), moved, len(slots), coded, staged, bool(gaps) and max(gaps) - min(gaps) > 1)


def _streamed_layers(evidence: Evidence) -> list[int]:
    """The layers whose weights, plain or coded, are read out of a slot."""
    layer, found = 0, set()
    for record in evidence.stream:
        if not isinstance(record, Dispatch | Copy):
            continue
        reads = [v.buffer for v in record.operands.values()] if isinstance(record, Dispatch) else [record.src.buffer]
        if getattr(record, "queue", "") == "direct" and any(name.startswith("slot[") for name in reads):
            found.add(layer % evidence.case.layers)
        if isinstance(record, Dispatch) and record.kernel == "decoder_layer":
            layer += 1
    return sorted(found)
