"""The device of threads: queues really run beside each other, and bytes equal the emulated device's."""

import threading
from pathlib import Path

import pytest
import torch

import xinfer_lab.device.direct_file as direct_file
from tests.device_programs import floats, kernels
from tests.models import Models, tiny
from xinfer_lab.device.direct_file import DirectFile
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory, StreamError
from xinfer_lab.device.host_device import HostDevice
from xinfer_lab.device.records import Copy, Dispatch, Wait
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, run_fixed

LONG = 60.0
"""Seconds after which a test gives up on a thread that should long have been there."""


def host(**options):
    return HostDevice(kernels=kernels(), **options)


# ---------------------------------------------------------------------------------------------------------- bytes equal


@pytest.mark.parametrize("tier", ["pinned", "registered", "staged"])
@pytest.mark.parametrize(("layers", "pool"), [(6, 2), (7, 3), (7, 2)])
def test_streamed_on_threads_gives_the_resident_bytes(models: Models, layers: int, pool: int, tier: str) -> None:
    spec = tiny(layers)
    resident = models.resident(spec)
    with HostDevice(check=True) as device:
        run = models.streamed(spec, pool, device, resident.tokens, host_memory=tier)
        assert not device.findings() and ("file cache" in device.link) == (tier == "registered")
    assert compare_logits(resident.logits, run.logits) == (True, 0.0)


def test_serial_and_streamed_run_under_a_budget_that_the_model_exceeds(models: Models) -> None:
    spec = tiny(6)
    resident = models.resident(spec)
    with EmulatedDevice() as device:
        budget = models.streamed(spec, 2, device, resident.tokens).memory.peak
    with HostDevice(memory=budget) as device, pytest.raises(OutOfDeviceMemory):
        QwenModel.load(models.path(spec), device)
    with HostDevice(memory=budget) as device:
        load = lambda device: QwenModel.load_serial(models.path(spec), device, host_memory="registered")  # noqa: E731
        run = run_fixed(load, device, resident.tokens)
    assert compare_logits(resident.logits, run.logits) == (True, 0.0)


# --------------------------------------------------------------------------------------------------------------- queues


def test_queues_run_beside_each_other() -> None:
    """Each kernel waits for the other: on one thread neither would ever end."""
    with host() as device:
        met = threading.Barrier(2, timeout=LONG)
        other = device.create_queue("compute 2", "direct")
        device.direct_queue.dispatch(lambda: met.wait())
        other.dispatch(lambda: met.wait())
        device.wait_idle()
        assert not met.broken


def test_a_queue_waits_for_a_fence_and_the_host_too() -> None:
    with host() as device:
        done, go = [], threading.Event()
        fence = device.create_fence()
        device.copy_queue.dispatch(lambda: go.wait(LONG) and done.append("first"))
        device.copy_queue.signal(fence, 1)
        device.direct_queue.wait(fence, 1)
        device.direct_queue.dispatch(lambda: done.append("second"))
        device.direct_queue.signal(after := device.create_fence(), 1)
        assert done == []
        go.set()
        after.wait(1)
        assert done == ["first", "second"]


def test_what_breaks_a_queue_reaches_the_host_with_the_line_that_asked_for_it() -> None:
    device = host()
    fence = device.create_fence()
    buffer = device.create_buffer(16)
    device.direct_queue.dispatch("fail", out=buffer.view("float32", (4,)))
    device.direct_queue.signal(fence, 1)
    device.copy_queue.wait(fence, 1)
    with pytest.raises(ArithmeticError, match="this kernel fails") as caught:
        fence.wait(1)
    assert any(Path(__file__).name in note for note in caught.value.__notes__)
    with pytest.raises(ArithmeticError):
        device.close()
    assert not running()


def test_a_value_reached_before_a_queue_broke_can_still_be_waited_for() -> None:
    device = host()
    fence = device.create_fence()
    device.direct_queue.signal(fence, 1)
    fence.wait(1)
    device.direct_queue.dispatch("fail", out=device.create_buffer(16).view("float32", (4,)))
    device.direct_queue.signal(fence, 2)
    with pytest.raises(ArithmeticError):
        fence.wait(2)
    fence.wait(1)
    device._shut()


@pytest.fixture(autouse=True)
def _others() -> None:
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


OTHERS: set[threading.Thread] = set()
"""Threads that were there before a test."""


def running() -> list[str]:
    names = (thread.name for thread in threading.enumerate() if thread not in OTHERS)
    return [name for name in names if name.startswith("xinfer-lab")]


def test_threads_end_with_the_device_also_when_a_block_is_left_by_an_exception() -> None:
    with host() as device:
        assert len(running()) == len(device.queues)
    assert not running()
    with pytest.raises(KeyError), host() as device:
        never = threading.Event()
        device.copy_queue.dispatch(lambda: never.wait(0.01))
        device.copy_queue.signal(fence := device.create_fence(), 1)
        device.direct_queue.wait(fence, 1)
        raise KeyError
    assert not running()


# ------------------------------------------------------------------------------------------------------------- timeline


def test_every_command_is_timed_in_its_lane_and_waits_point_at_their_signals() -> None:
    with host() as device:
        buffer, heap = device.create_buffer(16), device.create_upload_heap(16)
        heap.write(0, floats(1, 2, 3, 4))
        fence = device.create_fence()
        device.copy_queue.copy(buffer, heap)
        device.copy_queue.signal(fence, 1)
        device.direct_queue.wait(fence, 1)
        device.direct_queue.dispatch("fold", total=buffer.view("float32", (4,)), weight=buffer.view("float32", (4,)))
        device.wait_idle()
        timeline, stream = device.timeline(), list(device.stream)
    timed = {event.record: event for event in timeline.events}
    asked = [index for index, record in enumerate(stream) if isinstance(record, Copy | Dispatch | Wait)]
    assert sorted(timed) == asked
    copy, kernel = (timed[index] for index in asked if not isinstance(stream[index], Wait))
    assert 0 <= copy.start <= copy.end <= kernel.start <= kernel.end
    (flow,) = [flow for flow in timeline.flows if flow.fence == fence.name]
    assert (flow.signal_lane, flow.wait_lane) == ("copy", "direct") and copy.end <= flow.signal_time <= flow.wait_time
    assert timeline.peak_memory == device.memory.use().peak


# ----------------------------------------------------------------------------------------------------------------- disk


@pytest.mark.parametrize("offset", [0, 1, 4095, 4096, 5000, 12_287])
def test_a_file_is_read_at_any_offset_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    monkeypatch.setattr(direct_file, "_CHUNK", 8192)
    content = bytes(torch.randint(0, 256, (30_001,), generator=torch.Generator().manual_seed(1)).tolist())
    (tmp_path / "file").write_bytes(content)
    file = DirectFile(tmp_path / "file")
    for size in (1, 511, 8192, len(content) - offset):
        dst = torch.zeros(size, dtype=torch.uint8)
        file.read_into(dst, offset)
        assert bytes(dst.tolist()) == content[offset : offset + size]
    with pytest.raises(StreamError, match=f"ends at byte {len(content)}"):
        file.read_into(torch.zeros(len(content), dtype=torch.uint8), 1)
    assert file.how and file.size == len(content)
    file.close()
    file.close()


def test_where_nothing_leads_past_the_cache_the_bytes_are_the_same_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("O_DIRECT", "posix_fadvise", "preadv"):
        monkeypatch.delattr(direct_file.os, name, raising=False)
    monkeypatch.setattr(direct_file.sys, "platform", "win32")
    (tmp_path / "file").write_bytes(bytes(range(256)) * 40)
    file = DirectFile(tmp_path / "file")
    dst = torch.zeros(1000, dtype=torch.uint8)
    file.read_into(dst, 300)
    assert bytes(dst.tolist()) == (bytes(range(256)) * 40)[300:1300]
    assert not file.direct and "no way around it" in file.how
    file.close()
