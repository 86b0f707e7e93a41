"""Heaps that are a source themselves: copied from where they are, never written, and known as such in the stream."""

import mmap

import pytest
import torch

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError, StreamError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import Allocate, HostWrite, Source, Span
from xinfer_lab.device.replay import replay
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.stream import CommandStream

BYTES = torch.arange(1000, dtype=torch.int64).to(torch.uint8)


class Provider:
    """One source, ``numbers``."""

    def nbytes(self, name):
        return BYTES.numel() if name == "numbers" else None

    def bytes(self, name):
        return BYTES


def opened(**options):
    device = EmulatedDevice(**options)
    device.sources.mount(Provider())
    return device


def read_back(device, heap):
    """The heap's bytes, once through device memory."""
    there, back = device.create_buffer(heap.size), device.create_readback_heap(heap.size)
    fence = device.create_fence()
    device.direct_queue.copy(there, heap)
    device.direct_queue.copy(back, there)
    device.direct_queue.signal(fence, 1)
    fence.wait(1)
    return back.read("uint8", (heap.size,))


def test_a_mapped_heap_is_the_source():
    device = opened()
    heap = device.map_upload_heap("numbers")
    assert device._memory[heap.name].data_ptr() == BYTES.data_ptr()
    assert torch.equal(read_back(device, heap), BYTES)
    assert not device.hazards


def test_checking_leaves_the_source_as_it_is():
    before = BYTES.clone()
    device = opened(check=True)
    device.map_upload_heap("numbers").free()
    device.close()
    assert torch.equal(BYTES, before)


def test_the_host_cannot_write_a_mapped_heap():
    device = opened()
    heap = device.map_upload_heap("numbers", "file")
    with pytest.raises(BufferRangeError, match="'numbers' itself, mapped: the host cannot write there"):
        device.submit(HostWrite(dst=Span(heap.name, 0, 4), source=Source("numbers", 0, 4)))


@pytest.mark.parametrize("heap", ["default", "readback"])
def test_only_upload_heaps_are_mapped(heap):
    with pytest.raises(BufferRangeError, match="that is for upload heaps"):
        opened().submit(Allocate(buffer="x", size=1000, heap=heap, mapped="numbers"))


def test_a_source_must_be_there_and_as_large():
    device = opened()
    with pytest.raises(StreamError, match="no source is named 'letters'"):
        device.map_upload_heap("letters")
    with pytest.raises(BufferRangeError, match="which has 1000"):
        device.submit(Allocate(buffer="x", size=1001, heap="upload", mapped="numbers"))


def test_a_stream_says_what_is_mapped_and_can_be_replayed(tmp_path):
    device = opened()
    read_back(device, device.map_upload_heap("numbers", "file"))
    device.stream.save(tmp_path / "stream.json")
    stream = CommandStream.load(tmp_path / "stream.json")
    assert [record.mapped for record in stream if isinstance(record, Allocate)] == ["numbers", "", ""]
    replay(stream, opened())


def test_pinned_bytes_are_whole_pages_of_every_heap_alive():
    device = opened()
    page = mmap.PAGESIZE
    assert device.pinned_bytes == 0
    heap = device.create_upload_heap(page + 1)
    device.create_readback_heap(1)
    device.create_buffer(10 * page)
    device.map_upload_heap("numbers")
    assert device.pinned_bytes == 2 * page + page + page
    heap.free()
    assert device.pinned_bytes == 2 * page


def test_a_simulation_needs_no_bytes_and_counts_the_copy():
    device = SimulatedDevice(GPU_SPECS["h200"], memory=None)
    device.sources.mount(Provider())
    heap = device.map_upload_heap("numbers")
    device.copy_queue.copy(device.create_buffer(1000), heap)
    (copy,) = [event for event in device.timeline().events if event.kind == "copy"]
    assert copy.duration == pytest.approx(GPU_SPECS["h200"].copy_time(1000))
