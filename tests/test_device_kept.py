"""Command lists that are kept: executed again, they are in the stream what they would be if recorded anew."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import KernelError, OutOfDeviceMemory, StreamError
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable
from xinfer_lab.device.records import Dispatch

LIMIT = 8


def _check(operands, params):
    if not 0 <= params["amount"] < LIMIT:
        raise KernelError(f"add: amount must be 0 to {LIMIT - 1}, not {params['amount']}")


ADD = Kernel(
    name="add",
    run=lambda tensors, params: tensors["x"].add_(params["amount"] * params["sign"]),
    access=lambda operands, _: Access((operands["x"].span,), (operands["x"].span,)),
    cost=lambda operands, _: Cost(1.0, 1.0),
    workspace=lambda operands, params: 16 * params["amount"],
    check=_check,
    varying=frozenset({"amount"}),
)


def opened(**options):
    table = KernelTable(KERNELS)
    table.register(ADD)
    return EmulatedDevice(kernels=table, **options)


def bare(device):
    """The records of a stream, without the lines that issued them."""
    return [dataclasses.replace(record, where="") for record in device.stream]


class Program:
    """A buffer that is uploaded by the copy queue, added to on the direct queue, and read back."""

    def __init__(self, device, keep):
        self.device, self.keep, self.lists = device, keep, {}
        self.up = device.create_upload_heap(16, "up")
        self.back = device.create_readback_heap(16, "back")
        self.x = device.create_buffer(16, "x")
        self.up.write(0, b"\0\0\x80?" * 4)
        self.copied, self.done = device.create_fence("copied"), device.create_fence("done")
        self.seen = []

    def run(self, queue, key, fill, **params):
        kept = self.lists.get(key)
        if self.keep and kept is not None and kept.executable:
            queue.execute(kept, **params)
            return
        with queue.record(key, keep=self.keep) as commands:
            fill(commands)
        self.lists[key] = commands

    def step(self, amount):
        copies, direct = self.device.copy_queue, self.device.direct_queue
        number = self.copied.last_submitted + 1
        if number > 1:
            copies.wait(self.done, number - 1)
        self.run(copies, "upload", lambda commands: commands.copy(self.x, self.up))
        copies.signal(self.copied, number)
        direct.wait(self.copied, number)
        self.x.assume_common()

        def compute(commands):
            view = self.x.view("float32", (4,))
            commands.dispatch("add", params={"amount": amount, "sign": 2}, x=view)
            commands.dispatch("add", params={"amount": amount, "sign": -1}, x=view)
            commands.copy(self.back, self.x)

        self.run(direct, "compute", compute, amount=amount)
        direct.signal(self.done, number)
        self.done.wait(number)
        self.seen.append(self.back.read("float32", (4,)).tolist())


@given(st.lists(st.integers(0, LIMIT - 1), min_size=1, max_size=6), st.sampled_from(["timed", "random(1)"]))
@settings(max_examples=20)
def test_a_kept_list_leaves_the_stream_that_recording_anew_leaves(amounts, schedule):
    found = []
    for keep in (True, False):
        with opened(schedule=schedule) as device:
            program = Program(device, keep)
            for amount in amounts:
                program.step(amount)
            assert program.seen == [[1.0 + amount] * 4 for amount in amounts]
            assert not device.findings()
            found.append((bare(device), device.memory.use().peak, device.tracker.state("x")))
    assert found[0] == found[1]


def test_lines_of_a_kept_list_are_those_that_recorded_it():
    with opened() as device:
        program = Program(device, True)
        for amount in (1, 2):
            program.step(amount)
        lines = {record.where for record in device.stream if isinstance(record, Dispatch)}
    assert len(lines) == 2 and all("test_device_kept.py" in line for line in lines)


def test_what_varies_is_checked_each_time_and_refused_whole():
    with opened() as device:
        program = Program(device, True)
        program.step(1)
        kept, before = program.lists["compute"], len(device.stream)
        with pytest.raises(KernelError, match="0 to 7, not 9"):
            device.direct_queue.execute(kept, amount=9)
        with pytest.raises(StreamError, match="'sign' differ"):
            device.direct_queue.execute(kept, sign=1)
        assert len(device.stream) == before
        assert kept.executable


def test_a_kept_list_needs_its_workspace_within_the_budget():
    # 16 bytes of x, and 16 bytes of workspace for each unit of the amount.
    with opened(memory=16 + 16 * 3) as device:
        program = Program(device, True)
        program.step(1)
        program.step(3)
        with pytest.raises(OutOfDeviceMemory):
            device.direct_queue.execute(program.lists["compute"], amount=4)


def test_a_list_whose_buffer_went_or_that_was_not_kept_is_not_executed_again():
    with opened() as device:
        buffer = device.create_buffer(16, "b")
        for keep in (False, True):
            with device.direct_queue.record(keep=keep) as commands:
                commands.dispatch("add", params={"amount": 1, "sign": 1}, x=buffer.view("float32", (4,)))
            assert commands.executable is keep
        with pytest.raises(StreamError, match="for the direct queue, not for copy"):
            device.copy_queue.execute(commands)
        device.wait_idle()
        buffer.free()
        assert not commands.executable
        device.create_buffer(16, "b")
        assert not commands.executable, "another buffer of that name is another buffer"
        with pytest.raises(StreamError, match="record it again"):
            device.direct_queue.execute(commands)


def test_a_list_that_finds_other_states_is_recorded_anew():
    with opened() as device:
        program = Program(device, True)
        program.step(1)
        upload, compute = program.lists["upload"], program.lists["compute"]
        device.copy_queue.wait(program.done, 1)
        device.copy_queue.execute(upload)
        # The tracker has not been told that the copy is over: a barrier would be needed.
        assert device.tracker.state("x") == "COPY_DEST" and not compute.executable


def test_nothing_is_executed_while_a_list_is_recorded():
    with opened() as device:
        program = Program(device, True)
        program.step(1)
        with device.direct_queue.record():
            assert not program.lists["compute"].executable


def test_a_race_of_a_repeated_list_is_found():
    with opened(on_hazard="collect") as device:
        program = Program(device, True)
        program.step(1)
        device.copy_queue.execute(program.lists["upload"])
        assert not device.hazards, "the host waited for the direct queue"
        program.x.assume_common()
        device.direct_queue.execute(program.lists["compute"], amount=1)
    assert device.hazards, "nobody waited for the second upload"


def test_a_closed_device_executes_nothing():
    device = opened()
    program = Program(device, True)
    program.step(1)
    device.close()
    with pytest.raises(Exception, match="closed"):
        device.direct_queue.execute(program.lists["compute"], amount=1)
