"""Host copies by several threads, and small copies past the busy link."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.device import host_copy
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.host_copy import PIECE, copy_bytes, in_pieces
from xinfer_lab.device.simulated import SimulatedDevice


@pytest.mark.parametrize("size", [1, PIECE, 2 * PIECE, 2 * PIECE + 1, 5 * PIECE - 7])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_byte_is_copied(size, threads, monkeypatch):
    monkeypatch.setattr(host_copy, "host_threads", lambda: threads)
    source = torch.randint(0, 256, (size,), dtype=torch.uint8)
    target = torch.zeros(size + 2, dtype=torch.uint8)
    copy_bytes(target[1:-1], source)
    assert torch.equal(target[1:-1], source)
    assert target[0] == target[-1] == 0


@given(st.integers(0, 1000), st.integers(1, 300))
def test_pieces_cover_everything_once(size, piece):
    seen = []
    in_pieces(size, piece, lambda start, end: seen.append((start, end)))
    assert [byte for start, end in sorted(seen) for byte in range(start, end)] == list(range(size))


def test_an_error_in_a_piece_is_not_lost():
    with pytest.raises(ZeroDivisionError):
        in_pieces(10, 3, lambda start, end: start // (start - 6))


@pytest.mark.parametrize(("size", "waits"), [(2**16, False), (2**21, True)])
def test_small_copies_of_the_direct_queue_do_not_wait_for_an_upload(size, waits):
    spec = GPU_SPECS["h200"]
    device = SimulatedDevice(spec, memory=None)
    upload, tokens = device.create_upload_heap(2**30), device.create_upload_heap(size)
    device.copy_queue.copy(device.create_buffer(2**30), upload)
    device.direct_queue.copy(device.create_buffer(size), tokens)
    first, second = [event for event in device.timeline().events if event.kind == "copy"]
    assert second.start == (first.end if waits else 0.0)
