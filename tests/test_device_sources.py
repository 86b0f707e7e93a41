"""Named sources of bytes."""

import pytest
import torch

from xinfer_lab.device.errors import BufferRangeError, StreamError
from xinfer_lab.device.records import Source
from xinfer_lab.device.sources import Sources, as_bytes


class Provider:
    def __init__(self, **arrays: bytes) -> None:
        self.arrays = arrays

    def nbytes(self, name):
        return len(self.arrays[name]) if name in self.arrays else None

    def bytes(self, name):
        return as_bytes(self.arrays[name])


def text(raw):
    return raw.numpy().tobytes()


def test_inputs_and_mounted_arrays_are_found_by_name_inputs_first():
    sources = Sources()
    sources.mount(Provider(w=b"weights", x=b"weights' x"))
    sources.mount(Provider(w=b"never seen", v=b"second"))
    sources.put("x", b"input")
    assert [text(sources.read(sources.whole(name))) for name in "wvx"] == [b"weights", b"second", b"input"]
    assert text(sources.read(Source("w", 2, 3))) == b"igh"


def test_mounting_twice_is_mounting_once():
    sources, provider = Sources(), Provider()
    sources.mount(provider)
    sources.mount(provider)
    assert sources._providers == [provider]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_a_tensor_becomes_its_bytes_in_order(dtype):
    tensor = torch.arange(6).to(dtype).reshape(2, 3)
    source = Sources().put("t", tensor.t())
    assert source == Source("t", 0, 6 * dtype.itemsize)
    assert as_bytes(tensor.t()).view(dtype).tolist() == tensor.t().flatten().tolist()


def test_bytes_are_a_copy_of_an_input():
    data = bytearray(b"abc")
    sources = Sources()
    sources.put("b", bytes(data))
    sources.read(sources.whole("b")).fill_(0)
    assert text(sources.read(sources.whole("b"))) == b"abc"


def test_an_input_keeps_its_bytes():
    sources = Sources()
    assert sources.put("t", b"one") == sources.put("t", b"one")
    with pytest.raises(StreamError, match="'t' has other bytes already"):
        sources.put("t", b"two")


@pytest.mark.parametrize("source", [Source("w", 0, 8), Source("w", 7, 1), Source("w", -1, 2), Source("w", 0, -1)])
def test_a_range_outside_of_a_source_is_refused(source):
    sources = Sources()
    sources.mount(Provider(w=b"weights"))
    for look in (sources.check, sources.read):
        with pytest.raises(BufferRangeError, match="which has 7"):
            look(source)


def test_an_unknown_source_is_refused():
    for look in (Sources().whole, lambda name: Sources().read(Source(name, 0, 1))):
        with pytest.raises(StreamError, match="no source is named 'w': mount the checkpoint"):
            look("w")


@pytest.mark.parametrize("data", [5, [1, 2], "text", None])
def test_bytes_come_from_tensors_and_bytes_alone(data):
    # bytes(5) would be five zeros.
    with pytest.raises(TypeError, match=type(data).__name__):
        Sources().put("x", data)


def test_no_bytes_are_bytes_too():
    assert Sources().put("e", b"") == Source("e", 0, 0)
    assert as_bytes(torch.empty(0)).numel() == 0
