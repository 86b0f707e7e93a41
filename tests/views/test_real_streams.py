"""The views on what the simulator times and the hazard checker finds."""

import pytest

from tests.views.examples import MIB, stream_layers
from tests.views.perfetto_rules import problems
from tests.views.xml_rules import of_class, parsed
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.hazards import find_hazards
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable
from xinfer_lab.device.records import Allocate, Wait
from xinfer_lab.device.simulated import simulate
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.views.perfetto import perfetto_json
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_svg import timeline_svg
from xinfer_lab.views.timeline_text import timeline_text


@pytest.fixture(scope="module")
def kernels():
    table = KernelTable()
    table.register(
        Kernel(
            "decoder_layer",
            run=lambda tensors, params: None,
            access=lambda operands, params: Access(reads=tuple(view.span for view in operands.values())),
            cost=lambda operands, params: Cost(flops=1e9, bytes=4 * MIB),
            workspace=lambda operands, params: 0,
            check=lambda operands, params: None,
        )
    )
    return table


@pytest.fixture(scope="module")
def stream():
    made = stream_layers(layers=5, pool=2).stream
    slots = [Allocate(buffer=f"slot[{i}].part0", size=4 * MIB, heap="default") for i in range(2)]
    staging = Allocate(buffer="staging", size=4 * MIB, heap="upload")
    return CommandStream([*slots, staging, *made.records])


def test_a_simulated_stream_can_be_seen_in_every_way(stream, kernels):
    timeline = simulate(stream, GPU_SPECS["laptop"], kernels)
    picture = timeline_svg(timeline, title="t", slot_of=slots_of(stream), budget=16 * MIB)
    assert len(of_class(parsed(picture), "s0")) > 1
    assert "Device memory peaks at 8.00 MiB, within the budget of 16.00 MiB." in picture.alt
    assert problems(perfetto_json(timeline, stream)) == []
    assert max(map(len, timeline_text(timeline, slot_of=slots_of(stream)).splitlines())) <= 80


def test_a_forgotten_wait_is_marked_where_the_checker_finds_it(stream, kernels):
    gone = next(i for i, record in enumerate(stream) if isinstance(record, Wait) and record.queue == "direct")
    broken = stream.without(gone)
    hazards = [hazard for hazard in find_hazards(broken, kernels) if hazard.kind == "read-after-write"]
    timeline = simulate(broken, GPU_SPECS["laptop"], kernels)
    picture = timeline_svg(timeline, title="t", slot_of=slots_of(broken), hazards=hazards)
    assert len(hazards) == 1 and hazards[0].headline in picture.notes[-1]
    assert [t.text for t in of_class(parsed(picture), "on-badge")] == ["1"] * 3
