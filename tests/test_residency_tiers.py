"""Host tiers: the same bytes from each, and which one is taken where not all of them are possible."""

import pytest
import torch

from tests.models import tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import CudaUnavailable
from xinfer_lab.device.records import Allocate, Copy, HostWrite
from xinfer_lab.qwen2 import Checkpoint, layer_layout
from xinfer_lab.residency import tiers
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import serial_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, run_fixed
from xinfer_lab.residency.tiers import HOST_MEMORY, choose_tier, open_host
from xinfer_lab.residency.weights import CheckpointWeights


class Gpu(EmulatedDevice):
    """An emulated device that passes for a GPU where tiers are chosen."""

    refused = ""
    broken = False

    def __init__(self, **options):
        super().__init__(**options)
        self.torch_device = torch.device("cuda")

    def map_refusal(self, source):
        return self.refused

    def map_upload_heap(self, source, name=None):
        if self.broken:
            raise CudaUnavailable("no page of it could be pinned.")
        return super().map_upload_heap(source, name)


@pytest.fixture
def weights(models):
    with Checkpoint.open(models.path(tiny(6, shards=3, dtype="bfloat16"))) as checkpoint:
        yield CheckpointWeights(checkpoint)


def opened(device, weights, **options):
    device.sources.mount(weights)
    said = []
    host = open_host(options.pop("tier"), device, weights, range(6), on_tier=said.append, **options)
    return type(host).__name__, said


@pytest.mark.parametrize("schedule", ["timed", "copies_first", "copies_last", "random(3)"])
@pytest.mark.parametrize("tier", HOST_MEMORY)
def test_every_tier_gives_the_resident_runs_bytes(models, tier, schedule):
    spec = tiny(6, shards=2, dtype="bfloat16")
    right = models.resident(spec)
    device = EmulatedDevice(schedule=schedule)
    run = run_fixed(
        lambda device: QwenModel.load_streaming(models.path(spec), device, 2, host_memory=tier), device, right.tokens
    )
    assert compare_logits(right.logits, run.logits) == (True, 0.0)
    assert not run.hazards
    assert not run.state_faults


@pytest.mark.parametrize("make", [lambda: streaming_layers(3, "registered"), lambda: serial_layers("registered")])
def test_registered_layers_are_copied_straight_out_of_each_file_mapped_once(models, make):
    spec = tiny(6, shards=3)
    with Checkpoint.open(models.path(spec)) as checkpoint, EmulatedDevice() as device:
        files = {f"file {name}": path.stat().st_size for name, path in checkpoint.files().items()}
        with QwenModel(CheckpointWeights(checkpoint), device, make(), context=16) as model:
            first = len(device.stream)
            model.begin(2)
            for token in (1, 2):
                model.forward(torch.tensor([[token]]))
            mapped = [r for r in device.stream if isinstance(r, Allocate) and r.mapped]
            later = device.stream.records[first:]
            writes = [r.dst.buffer for r in later if isinstance(r, HostWrite)]
            moved = sum(r.dst.size for r in later if isinstance(r, Copy) and r.queue == "copy")
    names = {record.mapped for record in mapped}
    assert len(names) == len(mapped)
    assert names <= set(files)
    assert all(record.size == files[record.mapped] for record in mapped)
    assert set(writes) == {"tokens.in"}
    assert moved == 2 * 6 * layer_layout(spec.config()).weight_nbytes


def test_auto_takes_the_files_as_they_are_where_it_can(weights):
    name, said = opened(Gpu(), weights, tier="auto")
    assert name == "MappedLayers"
    assert "registered" in said[0]


def test_auto_says_why_it_pins_a_copy(weights):
    device = Gpu()
    device.refused = "this driver is old"
    name, said = opened(device, weights, tier="auto")
    assert name == "PinnedLayers"
    assert said == ["The layers are copied into pinned memory (pinned), since this driver is old."]


def test_auto_stages_where_a_pinned_copy_does_not_fit(weights, monkeypatch):
    monkeypatch.setattr(tiers, "free_host_memory", lambda: 100)
    name, said = opened(Gpu(), weights, tier="auto")
    assert name == "StagedLayers"
    assert "does not fit into the 100 B of memory that are free" in said[0]


def test_auto_falls_back_when_registering_fails_and_leaves_nothing_mapped(weights):
    device = Gpu()
    device.broken = True
    name, said = opened(device, weights, tier="auto")
    assert name == "PinnedLayers"
    assert said[-1].startswith("The layers are copied into pinned memory instead (pinned): no page")
    assert not any(held.mapped for held in device.rules.buffers.values())


def test_what_was_asked_for_by_name_is_not_replaced(weights):
    device = Gpu()
    device.refused = "this driver is old"
    with pytest.raises(RequestError, match="out of their files: this driver is old; choose --host-memory pinned"):
        opened(device, weights, tier="registered")
    device = Gpu()
    device.broken = True
    with pytest.raises(CudaUnavailable):
        opened(device, weights, tier="registered")


def test_an_emulated_device_pins_and_says_nothing(weights):
    assert choose_tier(EmulatedDevice(), weights, range(6)) == ("pinned", "")


def test_an_unknown_tier_is_refused(weights):
    with pytest.raises(ValueError, match="one of auto, pinned, registered, staged, not 'floppy'"):
        opened(EmulatedDevice(), weights, tier="floppy")


@pytest.mark.parametrize("tier", ["pinned", "registered", "staged"])
def test_closing_gives_all_host_memory_back(models, tier):
    spec = tiny(6, shards=2)
    with EmulatedDevice() as device:
        model = QwenModel.load_streaming(models.path(spec), device, 2, host_memory=tier)
        held = device.pinned_bytes
        model.close()
        assert held > 0
        assert device.pinned_bytes == 0
