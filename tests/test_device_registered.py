"""Which memory may be registered with CUDA as it is; and, on a GPU, that it is copied from where it is."""

import mmap
import sys
import warnings

import pytest
import torch

from xinfer_lab.device import registered
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import CudaUnavailable
from xinfer_lab.device.registered import refusal

linux = pytest.mark.skipif(sys.platform != "linux", reason="files are registered on Linux only")
GPU = torch.device("cuda", 0)


def mapped(path, access, size=3 * mmap.PAGESIZE + 5):
    path.write_bytes(bytes(range(256)) * (size // 256 + 1))
    with path.open("r+b") as stream:
        held = mmap.mmap(stream.fileno(), size, access=access)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.frombuffer(held, dtype=torch.uint8)


@pytest.fixture
def supported(monkeypatch):
    monkeypatch.setattr(registered, "_read_only_supported", lambda index: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")


@linux
def test_a_shared_read_only_map_may_be_registered(tmp_path, supported):
    assert refusal(mapped(tmp_path / "file", mmap.ACCESS_READ), GPU) == ""


@linux
@pytest.mark.parametrize("access", [mmap.ACCESS_COPY, mmap.ACCESS_WRITE])
def test_other_maps_are_refused_since_registering_them_copies_or_hangs(tmp_path, supported, access):
    assert "shared and read-only" in refusal(mapped(tmp_path / "file", access), GPU)


@linux
def test_ordinary_memory_and_a_part_of_a_file_are_refused(tmp_path, supported):
    assert "shared and read-only" in refusal(torch.zeros(10 * mmap.PAGESIZE, dtype=torch.uint8), GPU)
    assert "no whole file" in refusal(mapped(tmp_path / "file", mmap.ACCESS_READ)[8:], GPU)


def test_the_device_is_asked_first(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(registered, "_read_only_supported", lambda index: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "an old GPU")
    assert "an old GPU or its driver" in refusal(mapped(tmp_path / "file", mmap.ACCESS_READ), GPU)


def test_other_systems_are_told_that_it_is_for_linux(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert "Linux only" in refusal(mapped(tmp_path / "file", mmap.ACCESS_READ), GPU)


class File:
    """A mapped file as a source called ``file``."""

    def __init__(self, memory):
        self.memory = memory

    def nbytes(self, name):
        return self.memory.numel() if name == "file" else None

    def bytes(self, name):
        return self.memory


@pytest.mark.cuda
def test_on_a_gpu_a_registered_file_is_copied_from_where_it_is(tmp_path):
    source = mapped(tmp_path / "file", mmap.ACCESS_READ, 5 * 2**20 + 3)
    with CudaDevice() as device:
        device.sources.mount(File(source))
        before = device.pinned_bytes
        heap = device.map_upload_heap("file")
        assert device.pinned_bytes - before == -(-source.numel() // mmap.PAGESIZE) * mmap.PAGESIZE
        there, back = device.create_buffer(heap.size), device.create_readback_heap(heap.size)
        fence = device.create_fence()
        device.copy_queue.copy(there, heap)
        device.copy_queue.signal(fence, 1)
        device.direct_queue.wait(fence, 1)
        device.direct_queue.copy(back, there)
        done = device.create_fence()
        device.direct_queue.signal(done, 1)
        done.wait(1)
        assert torch.equal(back.read("uint8", (heap.size,)), source)
        heap.free()
        # It can be registered again, so it was let go of.
        device.map_upload_heap("file").free()


@pytest.mark.cuda
def test_on_a_gpu_other_memory_is_refused(tmp_path):
    with CudaDevice() as device:
        device.sources.mount(File(mapped(tmp_path / "file", mmap.ACCESS_COPY)))
        assert "shared and read-only" in device.map_refusal("file")
        with pytest.raises(CudaUnavailable, match="copied from where it is"):
            device.map_upload_heap("file")


@pytest.mark.cuda
@pytest.mark.parametrize("size", [8, 2**16, 2**20, 2**20 + 8])
def test_on_a_gpu_small_copies_of_the_direct_queue_bring_the_same_bytes(size):
    data = torch.randint(0, 256, (size,), dtype=torch.uint8)
    with CudaDevice() as device:
        heap, there = device.create_upload_heap(size), device.create_buffer(size)
        back, fence = device.create_readback_heap(size), device.create_fence()
        heap.write(0, data)
        device.direct_queue.copy(there, heap)
        device.direct_queue.copy(back, there)
        device.direct_queue.signal(fence, 1)
        fence.wait(1)
        assert torch.equal(back.read("uint8", (size,)), data)


@pytest.mark.cuda
def test_on_a_gpu_memory_that_is_not_pinned_gives_the_same_bytes():
    data = torch.randint(0, 256, (2**22,), dtype=torch.uint8)
    with CudaDevice(pin=False) as device:
        heap, there = device.create_upload_heap(data.numel()), device.create_buffer(data.numel())
        assert not device._memory[heap.name].is_pinned()
        back, fence = device.create_readback_heap(data.numel()), device.create_fence()
        heap.write(0, data)
        device.direct_queue.copy(there, heap)
        device.direct_queue.copy(back, there)
        device.direct_queue.signal(fence, 1)
        fence.wait(1)
        assert torch.equal(back.read("uint8", (data.numel(),)), data)
