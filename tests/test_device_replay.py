"""Replay: the same stream again, on the same or another device, and what the host learns is compared."""

import dataclasses
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device_programs import DEVICES, SCHEDULES, Ring, emulated, floats, kernels
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError, DeviceError, EarlyWait, KernelError, ReplayMismatch, StreamError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Copy, Dispatch, HostRead, HostWrite
from xinfer_lab.device.replay import replay
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.stream import CommandStream


def recorded(**options):
    """The stream of a ring, as it comes out of a file."""
    with emulated() as device:
        Ring(device, 5, 2, width=8, **options).run()
    return CommandStream.from_dict(json.loads(json.dumps(device.stream.to_dict())))


STREAM = recorded()


def index_of(kind, stream=STREAM, last=False):
    found = [index for index, record in enumerate(stream) if isinstance(record, kind)]
    return found[-1 if last else 0]


def changed(index, **changes):
    stream = STREAM.without()
    stream.records[index] = dataclasses.replace(stream[index], **changes)
    return stream


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_replay_makes_the_same_stream_and_reads_the_same_bytes(open_device):
    seen = []
    with open_device(check=True) as device:
        replay(STREAM, device, on_read=lambda index, record, raw: seen.append((index, record, raw.numel())))
        assert device.stream.records[: len(STREAM)] == STREAM.records
        assert device.stream.inputs == STREAM.inputs
        assert not device.findings()
    index = index_of(HostRead)
    assert seen == [(index, STREAM[index], 32)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_sound_stream_gives_the_same_digests_on_every_schedule(schedule):
    with emulated(schedule=schedule) as device:
        replay(STREAM, device)
    assert device.stream[index_of(HostRead)].digest == STREAM[index_of(HostRead)].digest != ""


def test_a_stream_can_be_replayed_again_and_again():
    stream = STREAM
    for _ in range(3):
        with emulated() as device:
            replay(stream, device)
        stream = device.stream.without(*range(len(STREAM), len(device.stream)))
    assert stream.records == STREAM.records


@pytest.mark.parametrize("open_device", DEVICES)
@pytest.mark.parametrize("check", [True, False])
def test_other_bytes_than_recorded_are_a_mismatch(open_device, check):
    index = index_of(HostRead)
    stream = changed(index, digest="0" * 32)
    with open_device(check=check) as device:
        device.create_buffer(8, "other records before it change no index")
        with pytest.raises(ReplayMismatch, match=rf"record {index}: the host read out.*{'0' * 32}.*device_programs.py"):
            replay(stream, device)


@pytest.mark.parametrize("open_device", DEVICES)
def test_other_inputs_are_a_mismatch(open_device):
    stream = STREAM.without()
    stream.inputs["input.1"] = floats(*range(8))
    with open_device() as device, pytest.raises(ReplayMismatch):
        replay(stream, device)


def test_mismatches_can_be_looked_at_instead():
    stream = changed(index_of(HostRead), digest="0" * 32)
    seen = []
    replay(stream, emulated(), on_read=lambda *read: seen.append(read), compare_digests=False)
    assert len(seen) == 1


def test_a_stream_without_a_digest_claims_nothing():
    replay(changed(index_of(HostRead), digest=""), emulated())


def test_a_simulation_compares_nothing():
    device = SimulatedDevice(GPU_SPECS["laptop"], kernels=kernels())
    replay(STREAM, device)
    assert len(device.stream) == len(STREAM) and not device.findings()


def test_a_stream_of_a_simulation_can_be_computed():
    device = SimulatedDevice(GPU_SPECS["laptop"], kernels=kernels())
    ring = Ring(device, 4, 2, width=8)
    ring.run()
    results = []
    with emulated() as computing:
        replay(device.stream, computing, on_read=lambda i, r, raw: results.append(raw.view(torch.float32).tolist()))
    assert results == [ring.expected()]


def test_inputs_of_the_device_are_not_written_over():
    device = emulated()
    device.sources.put("input.1", b"mine")
    with pytest.raises(StreamError, match=r"'input\.1' has other bytes"):
        replay(STREAM, device)


def test_missing_kernels_are_named():
    with pytest.raises(KernelError, match="'fold'; registered: none"):
        replay(STREAM, EmulatedDevice(kernels=KernelTable()))


def test_a_queue_that_only_the_stream_knows_is_made():
    stream = CommandStream(
        dataclasses.replace(r, queue="third") if getattr(r, "queue", None) == "copy" else r for r in STREAM
    )
    stream.inputs.update(STREAM.inputs)
    device = emulated()
    replay(stream, device)
    assert device.queues["third"].kind == "copy" and not device.hazards


def test_a_queue_called_host_is_refused():
    """Its copies would count as done by the host itself, at once: no race of theirs would be found."""
    stream = CommandStream(
        dataclasses.replace(r, queue="host") if getattr(r, "queue", None) == "copy" else r for r in STREAM
    )
    stream.inputs.update(STREAM.inputs)
    with pytest.raises(StreamError, match="'host'"):
        replay(stream, emulated())


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_stream_whose_signal_is_missing_is_refused(open_device):
    signal = next(i for i, r in enumerate(STREAM) if r.op == "signal" and r.fence == "arrived" and r.value == 5)
    with open_device() as device, pytest.raises(EarlyWait):
        replay(STREAM.without(signal), device)


def test_a_stream_whose_buffer_is_missing_is_refused():
    with pytest.raises(BufferRangeError, match="no buffer 'host'"):
        replay(STREAM.without(0), emulated())


@given(st.data())
@settings(max_examples=80)
def test_a_mutated_stream_is_refused_or_replayed_and_nothing_else(data):
    stream = STREAM.without()
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(stream) - 1))
        record = stream[index]
        match data.draw(st.sampled_from(["drop", "double", "swap", "shift", "queue", "value"])):
            case "drop":
                stream = stream.without(index)
            case "double":
                stream.records.insert(index, record)
            case "swap":
                other = data.draw(st.integers(0, len(stream) - 1))
                stream.records[index], stream.records[other] = stream[other], record
            case "shift" if isinstance(record, (Copy, HostWrite)):
                offset = data.draw(st.sampled_from([0, 4, 31, 2**53]))
                stream.records[index] = dataclasses.replace(record, dst=dataclasses.replace(record.dst, offset=offset))
            case "shift" if isinstance(record, Dispatch):
                view = dataclasses.replace(
                    record.operands["weight"], shape=data.draw(st.sampled_from([(8,), (0,), (2**50,)]))
                )
                stream.records[index] = dataclasses.replace(record, operands={**record.operands, "weight": view})
            case "queue" if hasattr(record, "queue"):
                queue = data.draw(st.sampled_from(["direct", "copy", "third", "host"]))
                stream.records[index] = dataclasses.replace(record, queue=queue)
            case "value" if hasattr(record, "value"):
                value = data.draw(st.sampled_from([0, 1, 3, 2**53]))
                stream.records[index] = dataclasses.replace(record, value=value)
    device = emulated(schedule=data.draw(st.sampled_from(SCHEDULES)), memory=2**20)
    try:
        replay(stream, device)
    except DeviceError as error:
        assert str(error)
    else:
        assert device.stream.records == stream.records
