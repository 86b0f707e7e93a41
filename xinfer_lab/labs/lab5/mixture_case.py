"""Small models whose experts and KV pages share one page pool, described by plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.programs.calls import NotedPool
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.labs.lab5.given.parts_pool import PartsPool
from xinfer_lab.labs.lab5.given.single_pages import SinglePages
from xinfer_lab.labs.lab5.page_shape import PageShape
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import expert_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.cache import cache_shape
from xinfer_lab.residency.experts import expert_layers
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_cache import PagedCache, cache_pages
from xinfer_lab.residency.paged_experts import PagedExperts
from xinfer_lab.residency.weights import SyntheticWeights

__all__ = ["MixtureCase", "Resident", "resident_run", "run_mixture", "with_memory"]

UNIT = 256


@dataclass(frozen=True, slots=True)
class MixtureCase:
    """A synthetic model with ``experts`` experts a layer, of which a token takes ``per_token``, and what it is to run:
    ``steps`` passes, the first over ``prompt`` tokens of each of ``batch`` sequences.

    Experts and KV pages are in one pool of ``frames`` frames, fewer than there are experts; all else is resident.
    ``memory`` is the device's budget in bytes, with no room for one frame more; ``seed`` that of weights and tokens.
    """

    layers: int
    experts: int
    per_token: int
    steps: int
    prompt: int
    batch: int
    frames: int
    dtype: str
    seed: int
    memory: int

    read_backs = ("logits.out", "experts.out")

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> MixtureCase:
        """The case that ``inputs`` describe. Raises `BadData` for anything else."""
        wanted = cls.__dataclass_fields__
        if set(inputs) != set(wanted):
            raise BadData(f"a case of a model with experts has the fields {', '.join(wanted)}")
        return cls(**inputs)

    def inputs(self) -> dict[str, Value]:
        """The case as the inputs of a `Case`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def label(self) -> str:
        """The case in a few words."""
        return (
            f"{self.layers} layers of {self.experts} experts, {self.steps} passes, {self.shape.pages} pages in "
            f"{self.frames} frames, {self.dtype}"
        )

    @property
    def config(self) -> Qwen2Config:
        """The model's shape."""
        narrow = 1 if self.dtype == "float32" else 2
        return SyntheticSpec(
            layers=self.layers, hidden=32, heads=2, kv_heads=2, intermediate=24, vocab=64, dtype=self.dtype,
            experts=self.experts, experts_per_token=self.per_token, expert_intermediate=4 * narrow,
        ).config()  # fmt: skip

    @property
    def context(self) -> int:
        """Tokens of cache: exactly what the run needs."""
        return self.prompt + self.steps - 1

    @property
    def shape(self) -> PageShape:
        """The pool's sizes: a page holds an expert, or the keys and values of a few tokens."""
        return _shape(self)

    def weights(self) -> SyntheticWeights:
        """The model's weights."""
        return SyntheticWeights(self.config, self.seed)

    def feed(self) -> list[torch.Tensor]:
        """The given tokens of each pass."""
        random = Random(self.seed)
        counts = [self.prompt] + [1] * (self.steps - 1)
        return [
            torch.tensor([[random.randrange(64) for _ in range(n)] for _ in range(self.batch)], device="cpu")
            for n in counts
        ]

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU on which a page crosses the link in a millisecond, and an expert takes about as long."""
        page = self.shape.page_bytes
        return GpuSpec("the lab's GPU", 2**30, page / 1e-3, 0.0, 1e12, page / 1e-3, 1e-5, 1e12)

    def run(self, device: Device, **options: Any) -> list[torch.Tensor]:
        """The logits of the passes, on a model with these options; closes the model."""
        model = QwenModel(
            self.weights(), device, resident_layers(), batch=self.batch, context=self.context, chunk=self.prompt,
            **options,
        )  # fmt: skip
        model.begin(self.steps)
        logits = [model.forward(tokens) for tokens in self.feed()]
        model.close()
        return logits


@lru_cache(maxsize=32)
def _shape(case: MixtureCase) -> PageShape:
    config = case.config
    page_bytes = -(-expert_layout(config).nbytes // UNIT) * UNIT
    kv = cache_pages(cache_shape(config, case.batch, case.context), page_bytes)
    return PageShape(case.frames, len(expert_layers(config)) * case.experts + kv, page_bytes)


def run_mixture(
    case: MixtureCase, parts: Mapping[str, Any], open_device: Callable[..., Device]
) -> tuple[SinglePages, list[torch.Tensor]]:
    """Run the case's passes with a pool made of ``parts``, and close the device; the pool, for its statistics, and the
    logits."""
    shape = case.shape
    device = open_device(memory=case.memory)
    pools: list[SinglePages] = []

    def pages() -> SinglePages:
        if not pools:
            pool = PartsPool(
                device, frames=shape.frames, pages=shape.pages, page_bytes=shape.page_bytes, parts=parts,
                name=shape.pool,
            )  # fmt: skip
            pools.append(SinglePages(NotedPool(device, pool)))  # type: ignore[arg-type]  # it hands on all else
        return pools[0]

    logits = case.run(
        device,
        make_cache=lambda device, shape: PagedCache(device, shape, pages(), owns_pool=False),
        make_experts=lambda device, weights: PagedExperts(pages(), weights.config, owns_pool=False),
    )
    pools[0].close()
    device.close()
    return pools[0], logits


@dataclass(frozen=True, slots=True)
class Resident:
    """A run with every expert resident and a cache in one piece: its ``logits``, and the device memory that it took."""

    logits: tuple[torch.Tensor, ...]
    peak: int


def resident_run(case: MixtureCase) -> Resident:
    """The same passes with everything resident: what parity is measured against."""
    return _resident(replace(case, frames=0, memory=0))


@lru_cache(maxsize=32)
def _resident(case: MixtureCase) -> Resident:
    with EmulatedDevice(check=False) as device:
        return Resident(tuple(case.run(device)), device.memory.use().peak)


def with_memory(case: MixtureCase) -> MixtureCase:
    """The case with a budget of what it needs, and half a frame more: not enough for another frame."""
    shape, config = case.shape, case.config
    kv = cache_shape(config, case.batch, case.context)
    experts = len(expert_layers(config)) * case.experts * expert_layout(config).nbytes
    # In place of all experts and all layers' caches: the frames, and one layer's cache, gathered.
    besides = resident_run(case).peak - experts - (kv.layers - 1) * kv.layer_bytes
    return replace(case, memory=besides + shape.frames * shape.page_bytes + shape.page_bytes // 2)
