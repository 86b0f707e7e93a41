"""The small models that queue programs are asked to run: drawn per run, described by plain values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Protocol

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.sources import ByteProvider
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.lab_gpu import lab_gpu
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.placeholder import PlaceholderLayers
from xinfer_lab.residency.weights import ModelWeights, SizedWeights, SyntheticWeights

__all__ = ["ModelCase", "ProgramCase", "beside", "memory_for", "run_model"]


class ProgramCase(Protocol):
    """What replaying and drawing a program need to know of its case; `ModelCase` is the usual one."""

    @property
    def memory(self) -> int | None:
        """The device's budget in bytes; None: unlimited."""
        ...

    @property
    def steps(self) -> int:
        """Passes, or however often what the program does is repeated."""
        ...

    @property
    def layers(self) -> int:
        """Parts of each step."""
        ...

    @property
    def read_backs(self) -> tuple[str, ...]:
        """The readback heaps in which the program around the answer finds its results: nothing but a read of them
        excuses a wait of the host."""
        ...

    def weights(self) -> ByteProvider:
        """The named bytes that the program may upload, besides the inputs of its stream."""
        ...

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """The GPU on whose clock the program is drawn."""
        ...


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A synthetic model and what it is to run: ``steps`` passes, the first over ``prompt`` tokens of each of ``batch``
    sequences.

    ``pool`` is the number of slots (1 for serial); ``memory`` the device's budget in bytes; ``seed`` that of the
    weights and tokens. ``others``: it is not the only model that uses the answer. One was opened, run and closed
    before, and one runs between its passes; both on devices of their own. ``begun``: so many passes are over already
    for the books of its layer source, where a lab's runner can set them. ``begins``: how often passes are announced,
    one at a time and in the end the rest.
    """

    layers: int
    pool: int
    steps: int
    prompt: int
    batch: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocab: int
    dtype: str
    tied: bool
    seed: int
    memory: int
    others: bool = field(default=False, kw_only=True)
    begun: int = field(default=0, kw_only=True)
    begins: int = field(default=1, kw_only=True)

    @classmethod
    def draw(
        cls, random: Random, *, layers: int, pool: int, steps: int, slots: int | None = None, dtype: str | None = None
    ) -> ModelCase:
        """A case with sizes, tokens and weights from ``random``; the budget has room for ``slots`` (default:
        ``pool``) slots.
        """
        kv_heads = random.choice((1, 2))
        heads = kv_heads * random.choice((1, 2))
        case = cls(
            layers=layers, pool=pool, steps=steps, prompt=random.randint(2, 6), batch=random.choice((1, 1, 2)),
            hidden=heads * random.choice((8, 16)), heads=heads, kv_heads=kv_heads,
            intermediate=8 * random.randint(5, 12), vocab=random.choice((64, 96, 128)),
            dtype=dtype or random.choice(("float32", "float32", "bfloat16", "float16")),
            tied=random.random() < 0.5, seed=random.randrange(2**31), memory=0,
        )  # fmt: skip
        return case.with_memory(pool if slots is None else slots)

    def with_memory(self, slots: int) -> ModelCase:
        """The same case with a budget of what it needs with ``slots`` slots, and half a layer: not enough for
        another slot.
        """
        return ModelCase(**{**self.inputs(), "memory": memory_for(self, slots)})

    def smallest(self) -> ModelCase:
        """A case of as many layers, slots and passes with as little in them as can be: for long runs. Its budget is the
        old one: see `with_memory`."""
        return replace(
            self, prompt=2, batch=1, hidden=8, heads=1, kv_heads=1, intermediate=8, vocab=16, dtype="float32"
        )

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> ModelCase:
        """The case that ``inputs`` describe. A field that has a default may be absent. Raises `BadData` for anything
        else.
        """
        wanted = cls.__dataclass_fields__
        needed = {name for name, field in wanted.items() if field.default is MISSING}
        if not needed <= set(inputs) <= set(wanted):
            raise BadData(f"a model case has the fields {', '.join(wanted)}")
        return cls(**inputs)

    def inputs(self) -> dict[str, Value]:
        """The case as the inputs of a `Case`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def label(self) -> str:
        """The case in a few words."""
        sequences = f", {self.batch} sequences" if self.batch > 1 else ""
        others = ", two models in turn, after a third was closed" if self.others else ""
        others += f", after {self.begun} passes" if self.begun else ""
        others += f", announced in {len(self.runs)} parts" if len(self.runs) > 1 else ""
        return f"{self.layers} layers, pool of {self.pool}, {self.steps} steps{sequences}, {self.dtype}{others}"

    @property
    def config(self) -> Qwen2Config:
        """The model's shape."""
        return SyntheticSpec(
            layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads,
            intermediate=self.intermediate, vocab=self.vocab, dtype=self.dtype, tied=self.tied,
        ).config()  # fmt: skip

    @property
    def runs(self) -> tuple[int, ...]:
        """How many passes are announced at a time."""
        alone = min(self.begins, self.steps) - 1
        return (*(1 for _ in range(alone)), self.steps - alone)

    @property
    def context(self) -> int:
        """Tokens of cache: exactly what the run needs."""
        return self.prompt + self.steps - 1

    read_backs = ("logits.out",)

    def weights(self) -> SyntheticWeights:
        """The model's weights."""
        return SyntheticWeights(self.config, self.seed)

    def feed(self) -> list[torch.Tensor]:
        """The given tokens of each pass, [batch, prompt] first and [batch, 1] after."""
        random = Random(self.seed)
        counts = [self.prompt] + [1] * (self.steps - 1)
        return [
            torch.tensor(
                [[random.randrange(self.vocab) for _ in range(count)] for _ in range(self.batch)], device="cpu"
            )
            for count in counts
        ]

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU on which computing one layer in a decode step takes ``ratio`` times its transfer."""
        return lab_gpu(self.config, ratio, position=self.context - 1, batch=self.batch)

    def model(self, weights: ModelWeights, device: Device, make_source: object) -> QwenModel:
        """The model on ``device`` with the layer source that ``make_source(device, weights)`` makes."""
        return QwenModel(weights, device, make_source, batch=self.batch, context=self.context, chunk=self.prompt)  # type: ignore[arg-type]


def run_model(
    case: ModelCase, weights: ModelWeights, device: Device, make_source: object, *, runs: Sequence[int] | None = None
) -> None:
    """Run the case's passes with its given tokens, and close the model and the device.

    ``runs``: how many passes are announced at a time, where that is not the case's own; together they are the case's.
    """
    others = _others(case, make_source) if case.others else iter(())
    next(others, None)
    for _ in _passes(case, weights, device, make_source, case.runs if runs is None else runs):
        next(others, None)


def _passes(
    case: ModelCase, weights: ModelWeights, device: Device, make_source: object, runs: Sequence[int]
) -> Iterator[None]:
    """Open the model, run a pass at each step, close model and device."""
    model = case.model(weights, device, make_source)
    feed = iter(case.feed())
    for passes in runs:
        model.begin(passes)
        for _ in range(passes):
            model.forward(next(feed))
            yield
    model.close()
    device.close()


def _others(case: ModelCase, make_source: object) -> Iterator[None]:
    """Other models with sources of the same kind: one that is over before the first step, then a pass of another at
    each. That one is still open when the case's model is closed."""
    for passes, step_by_step in ((2, False), (case.steps, True)):
        own = replace(beside(case), steps=passes)
        run = _passes(own, own.weights(), EmulatedDevice(memory=own.memory, check=False), make_source, (passes,))
        if step_by_step:
            yield  # the case's own model is made before this one
            yield from run
        else:
            deque(run, maxlen=0)


def beside(case: ModelCase) -> ModelCase:
    """A model to run beside the case's: a layer more, and memory for that layer's cache, but for no slot more.

    Books that all objects share would come out even beside a model of as many layers.
    """
    own = replace(case, layers=case.layers + 1, seed=case.seed + 1)
    return replace(own, memory=case.memory + _least(own) - _least(case))


def _least(case: ModelCase) -> int:
    return _peak_with_one_slot(replace(case, seed=0, memory=0, others=False))


def memory_for(case: ModelCase, slots: int) -> int:
    """Bytes of device memory that the case needs with ``slots`` slots, workspace included, and half a layer more."""
    layer = layer_layout(case.config).nbytes
    return _least(case) + (slots - 1) * layer + layer // 2


@lru_cache(maxsize=1024)
def _peak_with_one_slot(case: ModelCase) -> int:
    # From sizes alone, but by a whole run: the same cases are drawn again and again while answers are tried.
    device = SimulatedDevice(GPU_SPECS["laptop"], memory=None, check=False)
    run_model(case, SizedWeights(case.config), device, PlaceholderLayers)
    return device.memory.use().peak
