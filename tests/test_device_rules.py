"""What no device can do is refused, with an error that says what to do instead, and changes nothing."""

import copy

import pytest

from tests.device_programs import kernels
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError, EarlyWait, FenceError, KernelError, StreamError
from xinfer_lab.device.records import (
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Signal,
    Source,
    Span,
    Transition,
    View,
    Wait,
)
from xinfer_lab.device.stream_rules import StreamRules


def rules() -> StreamRules:
    """Queues direct and copy; dev, dev2, up, back of 1024 bytes each; gone, which was freed; fence f of copy at 2."""
    made = StreamRules(kernels(), {"direct", "copy"})
    for name, heap in (("dev", "default"), ("dev2", "default"), ("up", "upload"), ("back", "readback")):
        made.admit(Allocate(buffer=name, size=1024, heap=heap, where=f"make.py:{len(name)}"))
    made.admit(Allocate(buffer="gone", size=64, heap="default"))
    made.admit(Free(buffer="gone", where="lab.py:12"))
    made.admit(Signal(queue="copy", fence="f", value=2, where="lab.py:20"))
    return made


def copied(dst="dev:0:64", src="up:0:64", queue="copy", call=1):
    return Copy(queue=queue, dst=span(dst), src=span(src), call=call)


def span(text):
    name, offset, size = text.split(":")
    return Span(name, int(offset), int(size))


def fold(total=None, weight=None, call=1, **options):
    operands = {
        "total": total or View("dev", 0, (16,), "float32"),
        "weight": weight or View("dev2", 0, (16,), "float32"),
    }
    return Dispatch(queue="direct", kernel="fold", operands=operands, call=call, **options)


ADMITTED = [
    Allocate(buffer="new", size=1, heap="readback"),
    Allocate(buffer="gone", size=1, heap="default"),
    Free(buffer="dev"),
    HostWrite(dst=span("up:512:512"), source=Source("s", 3, 512)),
    HostRead(src=span("back:0:1024")),
    AssumeCommon(buffer="dev"),
    copied(),
    copied("back:0:8", "dev:1016:8"),
    copied("dev:0:8", "dev:8:8"),
    copied("back:0:8", "up:0:8"),
    fold(),
    Transition(queue="copy", buffer="dev", before="COMMON", after="COPY_DEST", call=1),
    Signal(queue="copy", fence="f", value=3),
    Signal(queue="direct", fence="g", value=9),
    Wait(queue="direct", fence="f", value=2),
    Wait(queue="direct", fence="f", value=1),
    HostWait(fence="f", value=2),
    HostWait(fence="never", value=0),
]


@pytest.mark.parametrize("record", ADMITTED, ids=lambda record: record.op)
def test_what_a_device_can_do_is_admitted(record):
    rules().admit(record)


REFUSED: list[tuple[str, Record, type[Exception], str]] = [
    ("unknown queue", copied(queue="third"), StreamError, "no queue 'third'; this device has copy, direct"),
    ("the host as a queue", copied(queue="host"), StreamError, "no queue 'host'"),
    ("name in use", Allocate(buffer="dev", size=1, heap="default"), StreamError, r"alive already, from make\.py:3"),
    ("no bytes", Allocate(buffer="new", size=0, heap="default"), BufferRangeError, "at least one"),
    ("negative size", Allocate(buffer="new", size=-4, heap="default"), BufferRangeError, "-4"),
    ("double free", Free(buffer="gone"), BufferRangeError, r"use after free: 'gone' .* freed at lab\.py:12"),
    ("free of nothing", Free(buffer="none"), BufferRangeError, "no buffer 'none' .* living: dev, dev2, up, back"),
    ("assumed after free", AssumeCommon(buffer="gone"), BufferRangeError, "use after free"),
    ("transition after free", Transition(queue="copy", buffer="gone", before="COMMON", after="COPY_DEST", call=1),
     BufferRangeError, "use after free"),
    ("transition of a heap", Transition(queue="copy", buffer="up", before="GENERIC_READ", after="COMMON", call=1),
     BufferRangeError, "state is fixed"),
    ("host writes device memory", HostWrite(dst=span("dev:0:4"), source=Source("s", 0, 4)), BufferRangeError,
     "default heap .* a queue copies from there"),
    ("host writes readback heap", HostWrite(dst=span("back:0:4"), source=Source("s", 0, 4)), BufferRangeError,
     "readback heap"),
    ("host writes other size", HostWrite(dst=span("up:0:4"), source=Source("s", 0, 5)), BufferRangeError,
     r"5 bytes of 's' do not fill up\[0:4\]"),
    ("host writes past the end", HostWrite(dst=span("up:1020:8"), source=Source("s", 0, 8)), BufferRangeError,
     "bytes 0 to 1024"),
    ("host reads device memory", HostRead(src=span("dev:0:4")), BufferRangeError, "device memory into one first"),
    ("host reads upload heap", HostRead(src=span("up:0:4")), BufferRangeError, "upload heap"),
    ("host reads nothing", HostRead(src=span("back:0:0")), BufferRangeError, "holds no bytes"),
    ("host reads freed", HostRead(src=span("gone:0:4")), BufferRangeError, "use after free"),
    ("copy of unequal sizes", copied("dev:0:8", "up:0:4"), BufferRangeError, "equal sizes"),
    ("copy of nothing", copied("dev:0:0", "up:0:0"), BufferRangeError, "holds no bytes"),
    ("copy past the end", copied("dev:1000:64", "up:0:64"), BufferRangeError, "cannot be copied to"),
    ("copy from past the end", copied("dev:0:64", "up:1000:64"), BufferRangeError, "cannot be copied from"),
    ("copy before the start", copied("dev:-8:64"), BufferRangeError, "bytes 0 to 1024"),
    ("copy into upload heap", copied("up:0:8", "dev:0:8"), BufferRangeError, "cannot copy into the upload heap"),
    ("copy from readback heap", copied("dev:0:8", "back:0:8"), BufferRangeError, "cannot copy from the readback heap"),
    ("copy after free", copied("dev:0:8", "gone:0:8"), BufferRangeError, "use after free"),
    ("copy onto itself", copied("dev:0:8", "dev:7:8"), BufferRangeError, "overlap itself"),
    ("unknown kernel", Dispatch(queue="direct", kernel="nope", call=1), KernelError, "'nope'; registered: fail, fold"),
    ("function of another device", Dispatch(queue="direct", kernel="closure f.1", call=1), KernelError, "Register it"),
    ("what the kernel refuses", fold(weight=View("dev2", 0, (8,), "float32")), KernelError, "of one shape"),
    ("operand on a heap", fold(weight=View("up", 0, (16,), "float32")), BufferRangeError, "'weight'.*copy the bytes"),
    ("operand out of range", fold(weight=View("dev2", 1000, (16,), "float32")), BufferRangeError, "bytes 0 to 1024"),
    ("operand after free", fold(weight=View("gone", 0, (16,), "float32")), BufferRangeError, "use after free"),
    ("operand not aligned", fold(weight=View("dev2", 2, (16,), "float32")), BufferRangeError, "not a multiple"),
    ("empty operand", fold(weight=View("dev2", 0, (0,), "float32")), BufferRangeError, "no bytes"),
    ("second signaller", Signal(queue="direct", fence="f", value=9), FenceError,
     r"belongs to the copy queue, which signalled it at lab\.py:20; the direct queue needs"),
    ("same value", Signal(queue="copy", fence="f", value=2), FenceError, "must be greater, not 2"),
    ("smaller value", Signal(queue="copy", fence="f", value=1), FenceError, r"is at 2 \(signalled at lab\.py:20\)"),
    ("signal of 0", Signal(queue="copy", fence="new", value=0), FenceError, "starts at 0"),
    ("early queue wait", Wait(queue="direct", fence="f", value=3), EarlyWait,
     "the direct queue waits for 'f' >= 3, .* so far is 2. Submit the signal first"),
    ("early host wait", HostWait(fence="f", value=3), EarlyWait, "the host waits for"),
    ("wait for what nobody signals", HostWait(fence="never", value=1), EarlyWait, "so far is 0"),
    ("wait for less than nothing", HostWait(fence="f", value=-1), FenceError, "nothing to wait for"),
    ("a record of no kind", Record(), StreamError, "not known"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "error", "match"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_no_device_can_do_is_refused_and_changes_nothing(record, error, match):
    made = rules()
    before = copy.deepcopy((made.buffers, made._freed, made._fences, made._last_call))
    with pytest.raises(error, match=match):
        made.admit(record)
    assert (made.buffers, made._freed, made._fences, made._last_call) == before


def test_checking_alone_changes_nothing():
    made = rules()
    for record in ADMITTED:
        made.check(record)
    made.check(copied())
    assert made.last_value("f") == 2 and "new" not in made.buffers and "dev" in made.buffers


def test_calls_are_numbered_in_the_order_of_issue():
    made = rules()
    made.admit(copied(call=4))
    made.admit(copied(call=4))
    made.admit(copied(queue="direct", call=5))
    with pytest.raises(StreamError, match="call 4 on 'copy' comes after call 5 on 'direct'"):
        made.admit(copied(call=4))


def test_a_call_belongs_to_one_queue():
    made = rules()
    made.admit(copied(call=4))
    with pytest.raises(StreamError, match="lists execute whole"):
        made.admit(copied(queue="direct", call=4))
    with pytest.raises(StreamError, match="lists execute whole"):
        made.admit(fold(call=4))
    with pytest.raises(StreamError, match="lists execute whole"):
        made.admit(Transition(queue="direct", buffer="dev", before="COMMON", after="COPY_DEST", call=4))


def test_a_freed_name_can_be_allocated_and_used_again():
    made = rules()
    made.admit(Allocate(buffer="gone", size=8, heap="default"))
    made.admit(copied("gone:0:8", "up:0:8"))
    with pytest.raises(BufferRangeError, match="bytes 0 to 8"):
        made.admit(copied("gone:0:9", "up:0:9", call=2))


def test_the_last_value_of_a_fence_is_what_was_submitted():
    made = rules()
    assert (made.last_value("f"), made.last_value("never")) == (2, 0)
    made.admit(Signal(queue="copy", fence="f", value=40))
    assert made.last_value("f") == 40


def test_a_copy_is_asked_of_a_card_that_it_touches() -> None:
    with EmulatedDevice(nodes=3) as device:
        x, y = (device.create_buffer(256, name, node=node) for name, node in (("x", 0), ("y", 1)))
        device.nodes[0].copy_queue.copy(y, x)
        device.nodes[1].direct_queue.copy(x, y)
        with pytest.raises(BufferRangeError, match=r"the copy@2 queue belongs to node 2, and y.* touches node 0, 1"):
            device.nodes[2].copy_queue.copy(y, x)
        with pytest.raises(BufferRangeError, match="touches node 1"):
            device.nodes[0].copy_queue.copy(y, device.create_upload_heap(256))
