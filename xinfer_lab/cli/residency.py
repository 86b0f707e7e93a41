"""`Residency`: where the layers of one run live. Options choose it once, and commands that run a model load by it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from xinfer_lab.cli.budget import explained, fitting_plan
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.screen import layer_progress, say_tier
from xinfer_lab.device.device import Device
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.factories import (
    MIN_POOL,
    Progress,
    SourceFactory,
    effective_pool,
    planned_layers,
    resident_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.plan import GroupPlan
from xinfer_lab.residency.weights import CheckpointWeights, ModelWeights

__all__ = ["Residency", "plan_name", "pool_name"]


@dataclass(frozen=True, kw_only=True)
class Residency:
    """``kind`` is "resident", "serial" (one slot), "streaming" (``pool`` slots), "engine" (the same, by a student's own
    ``engine``), "planned" (what the device's budget allows stays) or "paged" (layers in a page pool).

    ``host_memory`` is the tier that layers stream out of; ``paging`` says what is in pages.
    """

    kind: str = "resident"
    pool: int | None = None
    host_memory: str = "pinned"
    paging: Paging = NO_PAGING
    engine: Engine | None = None

    @classmethod
    def chosen(
        cls,
        *,
        pool: int | None,
        memory: int | None,
        host_memory: str = "pinned",
        paging: Paging = NO_PAGING,
        engine: Path | None = None,
        otherwise: str = "resident",
    ) -> Residency:
        """What the options come to: an engine, slots, a pool of pages, a budget of ``memory`` bytes, or ``otherwise``,
        "resident" or "streaming". Raises `CommandError` for options that exclude one another, `RequestError` for an
        engine that is not there.
        """
        if engine is not None:
            if paging != NO_PAGING:
                raise CommandError(
                    "--engine streams layers; it goes with none of --paged, --paged-cache, --paged-experts"
                )
            return cls(kind="engine", pool=pool or MIN_POOL, engine=Engine(engine))
        if pool is not None:
            kind = "streaming"
        elif paging.layers is not None:
            kind = "paged"
        else:
            kind = "planned" if memory is not None else otherwise
        slots = MIN_POOL if kind == "streaming" and pool is None else pool
        return cls(kind=kind, pool=slots, host_memory=host_memory, paging=paging)

    def as_resident(self) -> Residency:
        """All layers resident, nothing in pages: what the run is compared with."""
        return Residency()

    def as_serial(self) -> Residency:
        """The same layers through one slot, without overlap."""
        return replace(self, kind="serial", pool=None, engine=None)

    def check(self, checkpoint: Checkpoint) -> None:
        """Raise ValueError for a pool that cannot be, `CommandError` for experts that ``checkpoint`` has not."""
        self.paging.check(checkpoint)
        if self.pool is not None:
            effective_pool(self.pool, checkpoint.config.num_hidden_layers)

    def explained(
        self, config: Qwen2Config, memory: int | None, *, context: int, chunk: int, cards: int = 1
    ) -> AbstractContextManager[None]:
        """Within it, a device that ran out of its budget of ``memory`` bytes a card raises `CommandError`, which says
        what to do."""
        if self.paging != NO_PAGING:
            return self.paging.explained(memory)
        return explained(config, memory, context=context, chunk=chunk, pool=self.pool, cards=cards)

    def plan(self, config: Qwen2Config, device: Device, *, context: int, chunk: int) -> GroupPlan:
        """What stays and what streams within the budget of ``device``. Raises `CommandError` if nothing fits."""
        return fitting_plan(config, device, context=context, chunk=chunk, make_cache=self.paging.make_cache())

    def name(
        self, config: Qwen2Config, device: Callable[[], Device], *, context: int, chunk: int, cards: int = 1
    ) -> str:
        """What the run is called in a table. ``device`` opens one with the run's budget, for a plan to be made."""
        if self.kind == "planned":
            with device() as opened:
                return plan_name(self.plan(config, opened, context=context, chunk=chunk))
        if self.kind in ("streaming", "engine"):
            return pool_name(self.pool or MIN_POOL, -(-config.num_hidden_layers // cards)) + (
                ", yours" if self.engine else ""
            )
        return {"serial": "serial, 1 slot", "paged": self.paging.name}.get(self.kind, self.paging.name_of_experts)

    def load(
        self,
        checkpoint: Checkpoint,
        device: Device,
        *,
        context: int,
        chunk: int,
        on_plan: Callable[[GroupPlan], object] = lambda plan: None,
    ) -> QwenModel:
        """``checkpoint`` on ``device``, with a progress bar; ``on_plan`` hears the plan that a budget led to."""
        config = checkpoint.config
        plan = self.plan(config, device, context=context, chunk=chunk) if self.kind == "planned" else None
        if plan is not None:
            on_plan(plan)
        with layer_progress(f"Loading, {self.kind}", config.num_hidden_layers) as on_layer:
            weights: ModelWeights = CheckpointWeights(checkpoint)
            if self.engine is not None:
                weights = self.engine.weights(checkpoint)
            return QwenModel(
                weights, device, self._source(plan, on_layer), context=context, chunk=chunk,
                host_embedding=plan is not None and plan.host_embedding, make_cache=self.paging.make_cache(),
                make_experts=self.paging.make_experts(),
            )  # fmt: skip

    def _source(self, plan: GroupPlan | None, on_layer: Progress | None) -> SourceFactory:
        if self.engine is not None:
            return self.engine.streaming(self.pool or MIN_POOL)
        if plan is not None:
            return planned_layers(plan, self.host_memory, on_layer, on_tier=say_tier)
        match self.kind:
            case "serial":
                return serial_layers(self.host_memory, on_layer, on_tier=say_tier)
            case "paged":
                return self.paging.source(on_layer)
            case "streaming":
                return streaming_layers(self.pool or MIN_POOL, self.host_memory, on_layer, on_tier=say_tier)
        return resident_layers(on_layer)


def pool_name(pool: int, layers: int) -> str:
    """What streaming through ``pool`` slots really is, for a table."""
    slots = effective_pool(pool, layers)
    return "streaming: all layers fit" if slots is None else f"streaming, {slots} slots"


def plan_name(found: GroupPlan) -> str:
    """What a plan comes to, for a table."""
    return f"{found.resident} layers stay, {len(found.streamed)} stream" if found.streamed else "all layers fit"
