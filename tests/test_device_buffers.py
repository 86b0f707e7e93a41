"""Buffers, heaps and fences as a program sees them."""

import struct

import pytest
import torch

from tests.device_programs import DEVICES, emulated, floats
from xinfer_lab.device.buffers import as_span
from xinfer_lab.device.errors import BufferRangeError, DeviceClosed, EarlyWait, FenceError, StreamError
from xinfer_lab.device.records import Source, Span, View

CREATORS = ["create_buffer", "create_upload_heap", "create_readback_heap"]


@pytest.fixture
def device():
    with emulated() as opened:
        yield opened


def test_a_buffer_has_no_truth_value(device):
    with pytest.raises(TypeError, match="compare with None"):
        bool(device.create_buffer(4))


def test_a_fence_has_no_truth_value(device):
    with pytest.raises(TypeError, match="cannot be polled"):
        bool(device.create_fence())


@pytest.mark.parametrize("create", CREATORS)
@pytest.mark.parametrize("size", [4.0, 4.5, "4", True, None])
def test_a_size_is_a_whole_number(device, create, size):
    with pytest.raises(TypeError, match="whole number"):
        getattr(device, create)(size)
    assert len(device.stream) == 0


@pytest.mark.parametrize("create", CREATORS)
@pytest.mark.parametrize("size", [0, -1])
def test_a_size_is_positive(device, create, size):
    with pytest.raises(BufferRangeError, match="at least one"):
        getattr(device, create)(size)
    assert len(device.stream) == 0


def test_other_whole_numbers_than_int_are_taken(device):
    numpy = pytest.importorskip("numpy")
    buffer = device.create_buffer(numpy.int64(64))
    assert type(buffer.size) is int and type(device.stream[0].size) is int
    assert type(buffer.span(numpy.int32(4)).offset) is int
    assert all(type(size) is int for size in buffer.view("uint8", torch.Size([2, 3])).shape)


@pytest.mark.parametrize("create", [*CREATORS, "create_fence", "create_queue"])
@pytest.mark.parametrize(("name", "error"), [("", ValueError), ("n" * 257, ValueError), (7, TypeError)])
def test_a_name_is_some_text_but_not_too_much(device, create, name, error):
    arguments = (name,) if create in ("create_fence", "create_queue") else (4, name)
    with pytest.raises(error, match="name of a"):
        getattr(device, create)(*arguments)
    assert len(device.stream) == 0


def test_a_view_says_where_a_tensor_lies(device):
    buffer = device.create_buffer(64, "b")
    assert buffer.view(torch.float16, (2, 4), 16) == View("b", 16, (2, 4), "float16")
    assert buffer.view("float16", (2, 4), 16) == buffer.view(torch.float16, [2, 4], 16)
    with pytest.raises(TypeError, match="float64; one of uint8"):
        buffer.view(torch.float64, (2,))
    for bad in ({"shape": (2.0,)}, {"shape": (2,), "offset": 4.0}):
        with pytest.raises(TypeError, match="whole number"):
            buffer.view("uint8", **bad)


def test_a_copy_takes_buffers_spans_and_views(device):
    buffer = device.create_buffer(64, "b")
    assert as_span(buffer, device) == as_span(buffer.span(), device) == Span("b", 0, 64)
    assert as_span(buffer.view("int32", (2,), 8), device) == buffer.span(8, 8)
    assert buffer.span(16) == Span("b", 16, 48)
    with pytest.raises(TypeError, match="not Tensor"):
        as_span(torch.zeros(4), device)


def test_a_buffer_belongs_to_one_device(device):
    other = emulated()
    foreign, own = other.create_buffer(8, "b"), device.create_buffer(8, "b")
    for arguments in ((own, foreign), (foreign, own)):
        with pytest.raises(BufferRangeError, match="'b' belongs to another device"):
            device.copy_queue.copy(*arguments)
    assert len(device.stream) == 1


def test_a_fence_belongs_to_one_device(device):
    foreign = emulated().create_fence("f")
    for use in (device.copy_queue.signal, device.copy_queue.wait):
        with pytest.raises(FenceError, match="another device"):
            use(foreign, 1)
        with pytest.raises(TypeError, match="create_fence"):
            use("f", 1)


@pytest.mark.parametrize("value", [1.0, True, "1", None])
def test_a_fence_value_is_a_whole_number(device, value):
    fence = device.create_fence()
    for use in (lambda v: device.copy_queue.signal(fence, v), lambda v: device.copy_queue.wait(fence, v), fence.wait):
        with pytest.raises(TypeError, match="a fence value must be a whole number"):
            use(value)


def test_names_are_made_up_the_same_way_every_time(device):
    for opened in (device, emulated()):
        assert [opened.create_buffer(4).name for _ in range(2)] == ["default.1", "default.2"]
        assert opened.create_fence().name == "fence.1"
        assert opened.create_upload_heap(4).name == "upload.1"


def test_a_name_made_up_is_none_that_is_in_use(device):
    device.create_buffer(4, "default.1")
    device.create_fence("fence.1")
    device.sources.put("input.1", b"abcd")
    assert device.create_buffer(4).name == "default.2"
    assert device.create_fence().name == "fence.2"
    device.create_upload_heap(4).write(0, b"efgh")
    assert device.stream.inputs == {"input.1": b"abcd", "input.2": b"efgh"}


def test_a_living_name_cannot_be_taken_a_freed_one_can(device):
    buffer = device.create_buffer(4, "b")
    with pytest.raises(StreamError, match=r"alive already, from .*test_device_buffers\.py:\d+"):
        device.create_upload_heap(4, "b")
    buffer.free()
    assert device.create_upload_heap(8, "b").tracked_state == "GENERIC_READ"


def test_two_fences_never_share_a_name(device):
    device.create_fence("f")
    with pytest.raises(StreamError, match="'f' already"):
        device.create_fence("f")


def test_what_is_written_is_recorded_with_its_source(device):
    heap = device.create_upload_heap(64, "up")
    device.sources.put("weights", bytes(range(32)))
    assert heap.write(4, Source("weights", 8, 16)) == Span("up", 4, 16)
    assert heap.write(20, "weights") == Span("up", 20, 32)
    assert heap.write(60, b"abcd", name="tokens") == Span("up", 60, 4)
    assert heap.write(0, torch.tensor([7], dtype=torch.int32)) == Span("up", 0, 4)
    assert [record.source.name for record in device.stream.records[1:]] == ["weights", "weights", "tokens", "input.1"]
    assert device.stream.inputs["input.1"] == struct.pack("i", 7)


def test_writing_refuses_what_does_not_fit(device):
    heap = device.create_upload_heap(8, "up")
    for offset, data, error, match in [
        (4, b"12345", BufferRangeError, "bytes 0 to 8"),
        (-1, b"1", BufferRangeError, "bytes 0 to 8"),
        (0, b"", BufferRangeError, "holds no bytes"),
        (0.5, b"1", TypeError, "whole number"),
        (0, 5, TypeError, "int"),
        (0, "nothing of this name", StreamError, "no source"),
        (0, Source("nothing", 0, 4), StreamError, "no source"),
    ]:
        with pytest.raises(error, match=match):
            heap.write(offset, data)
    assert len(device.stream) == 1


def test_a_source_is_looked_up_before_the_write_is_recorded(device):
    heap = device.create_upload_heap(8, "up")
    device.sources.put("weights", b"1234")
    with pytest.raises(BufferRangeError, match="which has 4"):
        heap.write(0, Source("weights", 0, 8))
    assert len(device.stream) == 1


@pytest.mark.parametrize("open_device", DEVICES)
def test_bytes_go_to_the_device_and_back_unchanged(open_device):
    with open_device() as device:
        up, there, back = device.create_upload_heap(64), device.create_buffer(64), device.create_readback_heap(64)
        fence = device.create_fence()
        up.write(0, bytes(range(64)))
        device.copy_queue.copy(there, up)
        device.copy_queue.copy(back.span(8, 16), there.span(32, 16))
        device.copy_queue.signal(fence, 5)
        fence.wait(3)
        assert back.read("uint8", (4, 4), 8).tolist() == [list(range(row, row + 4)) for row in range(32, 48, 4)]


@pytest.mark.parametrize("open_device", DEVICES)
def test_what_the_host_read_is_its_own(open_device):
    with open_device() as device:
        up, back, fence = device.create_upload_heap(4), device.create_readback_heap(4), device.create_fence()
        up.write(0, floats(1.5))
        device.copy_queue.copy(back, up)
        device.copy_queue.signal(fence, 1)
        fence.wait(1)
        first = back.read("float32", (1,))
        first.add_(1)
        assert back.read("float32", (1,)).tolist() == [1.5]


@pytest.mark.parametrize("open_device", DEVICES)
def test_fresh_memory_is_full_of_nan_in_check_mode(open_device):
    with open_device(check=True) as device:
        there, back, fence = device.create_buffer(64), device.create_readback_heap(64), device.create_fence()
        assert back.read("float16", (32,)).isnan().all()
        device.copy_queue.copy(back, there)
        device.copy_queue.signal(fence, 1)
        fence.wait(1)
        for dtype in ("float32", "float16", "bfloat16"):
            assert back.read(dtype, (8,)).isnan().all()


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_wait_means_at_least(open_device):
    with open_device() as device:
        fence = device.create_fence()
        assert fence.last_submitted == 0
        device.direct_queue.signal(fence, 3)
        device.direct_queue.signal(fence, 7)
        assert fence.last_submitted == 7
        for value in (0, 1, 3, 5, 7, 2):
            fence.wait(value)
            device.copy_queue.wait(fence, value)
        with pytest.raises(EarlyWait, match="so far is 7"):
            fence.wait(8)
        assert not device.hazards


def test_a_wait_for_0_is_over_at_once_and_no_hazard(device):
    fence = device.create_fence()
    fence.wait(0)
    device.copy_queue.wait(fence, 0)
    assert not device.hazards


@pytest.mark.parametrize("open_device", DEVICES)
def test_freed_memory_cannot_be_named_again(open_device):
    with open_device() as device:
        buffer, up = device.create_buffer(8, "b"), device.create_upload_heap(8)
        buffer.free()
        for use in (buffer.free, lambda: device.copy_queue.copy(buffer, up), buffer.assume_common):
            with pytest.raises(BufferRangeError, match="use after free"):
                use()


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_closed_device_says_so(open_device):
    device = open_device()
    up, buffer, fence = device.create_upload_heap(8), device.create_buffer(8), device.create_fence()
    device.close()
    device.close()
    commands = device.copy_queue.record()
    for use in (
        lambda: device.create_buffer(8),
        lambda: device.create_queue("more"),
        lambda: up.write(0, b"1234"),
        lambda: device.copy_queue.copy(buffer, up),
        lambda: device.copy_queue.signal(fence, 1),
        lambda: fence.wait(0),
        buffer.free,
        device.wait_idle,
        commands.__enter__,
    ):
        with pytest.raises(DeviceClosed, match="open another one"):
            use()


def test_handles_say_what_they_are(device):
    assert repr(device.create_upload_heap(8, "up")) == "UploadHeap('up', 8 bytes)"
    assert repr(device.create_fence("f")) == "Fence('f', last submitted 0)"
    assert repr(device.copy_queue) == "CommandQueue('copy')"
