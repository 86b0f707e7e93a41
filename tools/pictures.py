"""Draw the pictures that the project keeps: timelines, page maps, memory bars, diagrams. `make pictures` runs it."""

from collections.abc import Iterator
from pathlib import Path

from tools.lab5_pictures import lab5_pictures
from tools.lab6_pictures import lab6_pictures
from tools.way_pictures import way_pictures
from xinfer_lab.cli.layer_cost import layer_cost
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.qwen2 import PUBLISHED
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout, resident_tensors
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.factories import SourceFactory, paged_layers, serial_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.compare import compare_timelines
from xinfer_lab.views.page_map import page_map
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.residency_bars import ResidencyBar, residency_bars
from xinfer_lab.views.slots import SlotOf, slots_of
from xinfer_lab.views.theme import ThemeName

__all__ = ["explore", "main", "memory", "pages", "pictures", "timelines"]

ROOT = Path(__file__).resolve().parent.parent
GIB = 2**30
CARD = {"a card of 24 GiB": 24 * GIB}
SPEC = SyntheticSpec(layers=6, hidden=128, heads=8, kv_heads=2, intermediate=384)
TOKENS = 8


def timelines(theme: ThemeName) -> Picture:
    """Serial and streaming passes of a small model on a GPU whose uploads take as long as its computing."""
    import torch

    config = SPEC.config()
    cost = layer_cost(config, TOKENS)
    spec = GpuSpec.lab(1.0, layer_bytes=layer_layout(config).nbytes, layer_cost=cost)

    def run(source: SourceFactory) -> tuple[Timeline, SlotOf]:
        with SimulatedDevice(spec) as device:
            model = QwenModel(SizedWeights(config), device, source, context=TOKENS, chunk=TOKENS)
            first = len(device.stream)
            model.begin(1)
            model.forward(torch.zeros(1, TOKENS, dtype=torch.int64))
            passes, slots = device.timeline().since(first), slots_of(device.stream)
            model.close()
        return passes, slots

    (serial, one), (streaming, two) = run(serial_layers()), run(streaming_layers(2))
    return compare_timelines(
        streaming,
        serial,
        title="Six decoder layers stream to the GPU, in one pass",
        names=("streaming, two slots", "serial, one slot"),
        slot_of=(two, one),
        theme=theme,
    )


def pages(policy: str, theme: ThemeName) -> Picture:
    """Three passes over six layers in a pool that has frames for four of them."""
    import torch

    config = SPEC.config()
    size = layer_layout(config).nbytes
    with SimulatedDevice(GpuSpec.lab(1.0, layer_bytes=size, layer_cost=layer_cost(config, TOKENS))) as device:
        source = paged_layers(4 * size, policy, size)
        model = QwenModel(SizedWeights(config), device, source, context=3 * TOKENS, chunk=TOKENS)
        model.begin(3)
        for _ in range(3):
            model.forward(torch.zeros(1, TOKENS, dtype=torch.int64))
        stream = list(device.stream)
        model.close()
    name = {"lru": "LRU", "belady": "Belady's rule"}[policy]
    title = f"Three passes over six layers, frames for four: {name}"
    return page_map(stream, title=title, page_bytes=size, pool="pool.1", theme=theme)


def _parts(config: Qwen2Config, context: int, working: int) -> tuple[int, dict[str, int]]:
    """Bytes of a layer, and what is in memory besides layers."""
    head_dim = config.hidden_size // config.num_attention_heads
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * config.dtype.itemsize
    stays = {
        "embedding, norm, head": resident_tensors(config).weight_nbytes,
        "KV cache": token * context,
        "working space": working,
    }
    return layer_layout(config).nbytes, stays


def memory() -> Picture:
    """Lab 1: a model that is too large for a card as a whole, and fits with three slots."""
    config = PUBLISHED["14b"]
    layer, stays = _parts(config, 16384, int(0.3 * GIB))
    bars = [
        ResidencyBar("all resident", {"layers or slots": config.num_hidden_layers * layer, **stays}),
        ResidencyBar("pool of 3", {"layers or slots": 3 * layer, **stays}),
    ]
    return residency_bars(bars, title="Qwen2.5-14B with 16,384 tokens of context", budgets=CARD)


def explore() -> Picture:
    """Lab 1: six models on a card of 24 GiB, each by the decision that the lab asks for."""
    bars = []
    for name, config in PUBLISHED.items():
        layer, stays = _parts(config, 8192, GIB // 2)
        room = (CARD["a card of 24 GiB"] - sum(stays.values())) // layer
        slots = min(room, config.num_hidden_layers)
        words = "resident" if slots == config.num_hidden_layers else f"{slots} slots"
        bars.append(ResidencyBar(f"{name.upper()}: {words}", {"layers or slots": slots * layer, **stays}))
    return residency_bars(bars, title="Six models with 8,192 tokens of context", budgets=CARD)


def pictures() -> Iterator[tuple[str, Picture]]:
    """Each picture with its path within the project."""
    yield "docs/timelines-light.svg", timelines("light")
    yield "docs/timelines-dark.svg", timelines("dark")
    for policy in ("lru", "belady"):
        yield f"docs/pages-{policy}-light.svg", pages(policy, "light")
        yield f"docs/pages-{policy}-dark.svg", pages(policy, "dark")
    yield "solutions/lab1-residency/memory.svg", memory()
    yield "solutions/lab1-residency/explore.svg", explore()
    yield from way_pictures()
    yield from lab5_pictures()
    yield from lab6_pictures()


def main() -> None:
    """Write all of them."""
    for path, picture in pictures():
        picture.save(ROOT / path)
        print(f"{path}: {picture.alt}")


if __name__ == "__main__":
    main()
