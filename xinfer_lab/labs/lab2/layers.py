"""Lab 2: uploads of layers into slots by an engine, and runs of a whole model through one slot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.numbers import whole
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.calls import NotedEngine, NotedRing, noted
from xinfer_lab.grading.programs.model_case import ModelCase, run_model
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.labs.lab2.given.one_slot import LayerUploader
from xinfer_lab.qwen2.layout import LayerLayout, layer_layout
from xinfer_lab.residency.weights import LayerSlot, LayerWeights, ModelWeights, SyntheticWeights

__all__ = ["DEPTH", "LayerScript", "Opener", "layer_scripts", "run_serial", "serial_cases", "upload_layers"]

DEPTH = 2
"""Layers that the staging ring has room for."""

LONG = 29
"""Layers of a model with more than 256 steps in nine passes."""

Opener = Callable[..., Device]


@dataclass(frozen=True, slots=True)
class LayerScript:
    """Layers of ``model`` that are uploaded one after the other: ``order`` has layer and slot of each. No slot comes
    twice in a row. ``others``: the engine is not the only one. Another was closed before it, and one uploads in turn
    with it.
    """

    model: ModelCase
    order: tuple[tuple[int, int], ...]
    others: bool = False

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> LayerScript:
        """The script that ``inputs`` describe. Raises `BadData` for anything else."""
        match dict(inputs):
            case {"model": dict(model), "order": list(order), "others": bool(others)}:
                return cls(ModelCase.of(model), tuple((layer, slot) for layer, slot in order), others)
        raise BadData("a script of layers has the fields model, order and others")

    def inputs(self) -> dict[str, Value]:
        """The script as the inputs of a case."""
        return {"model": self.model.inputs(), "order": [list(pair) for pair in self.order], "others": self.others}

    @property
    def layout(self) -> LayerLayout:
        """How a layer lies in memory."""
        return layer_layout(self.model.config)

    # As a `ProgramCase`

    memory = None
    layers = 1
    read_backs = ("arrived.out",)

    @property
    def steps(self) -> int:
        """Uploads."""
        return len(self.order)

    def weights(self) -> SyntheticWeights:
        """The model's weights."""
        return self.model.weights()

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU on which a layer is moved in a millisecond."""
        return self.model.spec(ratio)


def layer_scripts(random: Random) -> list[Case]:
    """Three models; layers in no order, and a last one that its slot holds already: it is uploaded all the same."""
    cases = []
    for slots, count, others in ((2, 6, False), (random.choice((4, 8)), 9, False), (3, 8, True)):
        layers = random.randint(4, 6)
        model = ModelCase.draw(random, layers=layers, pool=slots, steps=1)
        order: list[tuple[int, int]] = []
        for _ in range(count - 1):
            free = [slot for slot in range(slots) if not order or slot != order[-1][1]]
            order.append((random.randrange(layers), random.choice(free)))
        held = {slot: layer for layer, slot in order}
        slot = random.choice([slot for slot in held if slot != order[-1][1]])
        order.append((held[slot], slot))
        script = LayerScript(model, tuple(order), others)
        told = ", ".join(f"{layer} to slot {slot}" for layer, slot in order)
        beside = "; beside another engine" if others else ""
        cases.append(Case(f"layers {told}; {model.dtype}{beside}", script.inputs()))
    return cases


def upload_layers(
    engine_class: Any, make_ring: Callable[[Device, int], Any], inputs: Mapping[str, Value], opener: Opener
) -> None:
    """Upload the script's layers with an engine of the answer's; the direct queue reads each one while the next is
    uploaded."""
    script = LayerScript.of(inputs)
    beside = _others(engine_class, make_ring, script) if script.others else iter(())
    next(beside, None)
    for _ in _uploaded(engine_class, make_ring, script, opener()):
        next(beside, None)


def _others(engine_class: Any, make_ring: Callable[[Device, int], Any], script: LayerScript) -> Iterator[None]:
    """Engines of the same class on devices of their own: one that is closed before the first step, then an upload of
    another at each, which is made after the script's own and is for larger layers."""
    first = replace(script, order=script.order[:2])
    deque(_uploaded(engine_class, make_ring, first, EmulatedDevice(check=False)), maxlen=0)
    yield
    larger = replace(script, model=replace(script.model, intermediate=script.model.intermediate + 64))
    yield from _uploaded(engine_class, make_ring, larger, EmulatedDevice(check=False))


def _uploaded(
    engine_class: Any, make_ring: Callable[[Device, int], Any], script: LayerScript, device: Device
) -> Iterator[None]:
    """An upload at each step, and the reading of the one before."""
    weights, layout = script.weights(), script.layout
    device.sources.mount(weights)
    dtype = weights.config.dtype
    slots = [LayerSlot(device, f"slot[{k}]", layout, dtype) for k in range(1 + max(slot for _, slot in script.order))]
    out = device.create_readback_heap(script.steps * layout.nbytes, "arrived.out")
    ring = NotedRing(device, make_ring(device, DEPTH * layout.nbytes))
    engine = NotedEngine(device, engine_class(device, ring, layout))
    consumed, done = device.create_fence("consumed"), device.create_fence("done")
    ready: list[int] = []

    def read(step: int) -> None:
        device.direct_queue.wait(engine.copied, ready[step])
        offset = step * layout.nbytes
        for buffer in slots[script.order[step][1]].buffers:
            device.direct_queue.copy(out.span(offset, buffer.size), buffer, label=f"read upload {step}")
            offset += buffer.size
        device.direct_queue.signal(consumed, step + 1)

    last_read: dict[int, int] = {}
    for step, (layer, slot) in enumerate(script.order):
        if slot in last_read:
            device.copy_queue.wait(consumed, last_read[slot])
        value = engine.upload(layer, slots[slot])
        if (number := whole(value)) is None:
            raise TypeError(f"upload has to return the fence value, an int, but returned {value!r}")
        ready.append(number)
        last_read[slot] = step + 1
        if step:
            read(step - 1)
        yield
    read(script.steps - 1)
    device.direct_queue.signal(done, 1)
    done.wait(1)
    for step in range(script.steps):
        out.read("uint8", (layout.nbytes,), step * layout.nbytes)
    engine.close()
    device.close()


def serial_cases(count: int) -> Callable[[Random], list[Case]]:
    """``count`` small models, a few decode steps each, and device memory with room for one slot. One has one layer,
    which is there already in every pass but the first; the last is not the only model. Of four, one has more than 256
    steps."""

    def drawn(random: Random) -> list[Case]:
        cases = []
        for layers in (random.randint(5, 7), 1, *((LONG,) if count > 3 else ()), 4):
            model = ModelCase.draw(random, layers=layers, pool=1, steps=9 if layers == LONG else random.randint(3, 4))
            if layers == LONG:
                model = model.smallest().with_memory(1)
            model = replace(model, others=layers == 4)
            label = model.label.replace("pool of 1", "one slot").replace("1 layers", "1 layer")
            cases.append(Case(label, model.inputs()))
        return cases

    return drawn


def run_serial(
    source_class: Any,
    make_engine: Callable[[Device, LayerLayout], LayerUploader],
    inputs: Mapping[str, Value],
    opener: Opener,
) -> None:
    """Run the case's model with a layer source of the answer's, over the engine that ``make_engine`` makes."""

    def make(device: Device, weights: ModelWeights) -> Any:
        config = weights.config
        layout = layer_layout(config)
        engine = make_engine(device, layout)
        slot = LayerSlot(device, "slot[0]", layout, config.dtype)
        source = source_class(device, engine, slot, config.num_hidden_layers)
        return _Asked(device, source)

    case = ModelCase.of(inputs)
    run_model(case, case.weights(), opener(memory=case.memory), make)


class _Asked:
    """The answer's source, with a word on what `ensure` has to return; notes the calls."""

    def __init__(self, device: Device, source: Any) -> None:
        self._device, self._source = device, source
        self.begin, self.close = source.begin, source.close

    def release(self, layer: int) -> None:
        with noted(self._device, "release", layer):
            self._source.release(layer)

    def ensure(self, layer: int) -> LayerWeights:
        with noted(self._device, "ensure", layer):
            weights = self._source.ensure(layer)
        if not isinstance(weights, LayerWeights):
            raise TypeError(f"ensure has to return self.hand_over(layer), but returned {weights!r}")
        return weights
