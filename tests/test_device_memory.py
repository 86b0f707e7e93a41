"""The device memory budget."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.device_programs import DEVICES, emulated, kernels
from xinfer_lab.device.errors import OutOfDeviceMemory, format_bytes
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.memory import WORKSPACE, MemoryBudget
from xinfer_lab.device.simulated import SimulatedDevice


def test_an_allocation_that_does_not_fit_names_who_holds_what():
    budget = MemoryBudget(1000)
    budget.take("weights", 600)
    budget.take("cache", 300)
    budget.reserve_workspace(50)
    with pytest.raises(OutOfDeviceMemory) as caught:
        budget.take("logits", 51)
    error = caught.value
    assert (error.requested, error.used, error.budget) == (51, 950, 1000)
    assert list(error.holders.items()) == [("weights", 600), ("cache", 300), (WORKSPACE, 50)]
    for part in ("logits needs 51 B", "950 B of the budget of 1000 B", "50 B are free", "weights 600 B, cache 300 B"):
        assert part in str(error)


def test_only_the_largest_holders_are_named():
    budget = MemoryBudget(100)
    for size in range(1, 10):
        budget.take(f"b{size}", size)
    with pytest.raises(
        OutOfDeviceMemory, match=r"Held by: b9 9 B, b8 8 B, b7 7 B, b6 6 B, b5 5 B, b4 4 B and 3 more\."
    ):
        budget.take("more", 100)


def test_nothing_is_counted_where_nothing_fits():
    budget = MemoryBudget(10)
    budget.take("a", 10)
    before = budget.use()
    for refused in (lambda: budget.take("b", 1), lambda: budget.reserve_workspace(1), lambda: budget.check("b", 1)):
        with pytest.raises(OutOfDeviceMemory):
            refused()
    assert budget.use() == before


def test_the_budget_can_be_used_to_its_last_byte():
    budget = MemoryBudget(10)
    budget.take("a", 10)
    budget.give_back("a")
    budget.take("b", 10)
    assert budget.use().used == 10


def test_workspace_counts_once_with_its_largest_size():
    budget = MemoryBudget(100)
    for size in (30, 20, 40, 0):
        budget.reserve_workspace(size)
    assert budget.use().holders == {WORKSPACE: 40}
    with pytest.raises(OutOfDeviceMemory, match=f"{WORKSPACE} needs 61 B"):
        budget.reserve_workspace(101)


def test_a_buffer_may_be_called_like_the_workspace():
    budget = MemoryBudget(100)
    budget.reserve_workspace(10)
    budget.take(WORKSPACE, 5)
    budget.give_back(WORKSPACE)
    assert budget.use().used == 10


def test_who_holds_nothing_gives_nothing_back():
    budget = MemoryBudget()
    budget.take("a", 3)
    budget.give_back("b")
    assert budget.use().used == 3


@pytest.mark.parametrize("size", [0, -1])
def test_a_budget_is_positive(size):
    with pytest.raises(ValueError, match="positive"):
        MemoryBudget(size)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40))))
def test_used_is_the_sum_of_the_holders_and_never_above_budget_or_peak(steps):
    budget = MemoryBudget(100)
    for holder, size in steps:
        if size == 0:
            budget.give_back(holder)
        elif holder == "c":
            with contextlib.suppress(OutOfDeviceMemory):
                budget.reserve_workspace(size)
        else:
            try:
                budget.take(holder, size)
            except OutOfDeviceMemory:
                assert budget.use().used + size > 100
        use = budget.use()
        assert use.used == sum(use.holders.values()) <= min(use.peak, 100)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.50 KiB"),
        (3 * 2**20, "3.00 MiB"),
        (2**31, "2.00 GiB"),
        (2**50, "1024.00 TiB"),
    ],
)
def test_sizes_are_written_for_people(size, text):
    assert format_bytes(size) == text


# On a device


@pytest.mark.parametrize("open_device", DEVICES)
def test_only_device_memory_counts(open_device):
    with open_device() as device:
        before = device.memory.use().used
        device.create_upload_heap(4096)
        device.create_readback_heap(4096)
        assert device.memory.use().used == before
        buffer = device.create_buffer(512, "b")
        assert device.memory.use().used == before + 512
        buffer.free()
        assert device.memory.use().used == before
        assert device.memory.use().peak >= before + 512


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_buffer_that_does_not_fit_leaves_no_trace(open_device):
    with open_device(memory=2**30) as device:
        kept = device.create_buffer(2**20, "kept")
        before = device.memory.use(), len(device.stream)
        with pytest.raises(OutOfDeviceMemory, match=r"big needs 2\.00 GiB"):
            device.create_buffer(2**31, "big")
        assert (device.memory.use(), len(device.stream)) == before
        small = device.create_buffer(4096, "big")
        small.free()
        kept.free()


def test_a_kernel_whose_workspace_does_not_fit_is_not_dispatched():
    device = emulated(memory=4096)
    total, weight = device.create_buffer(64, "total"), device.create_buffer(64, "weight")
    operands = {"total": total.view("float32", (16,)), "weight": weight.view("float32", (16,))}
    device.direct_queue.dispatch("fold", params={"workspace": 1000}, **operands)
    before = device.memory.use(), len(device.stream)
    with pytest.raises(OutOfDeviceMemory, match=WORKSPACE) as caught:
        device.direct_queue.dispatch("fold", params={"workspace": 5000}, **operands)
    assert caught.value.holders == {WORKSPACE: 1000, "total": 64, "weight": 64}
    assert (device.memory.use(), len(device.stream)) == before


def test_one_kernel_of_a_list_that_does_not_fit_stops_the_whole_list():
    device = emulated(memory=4096)
    total, weight = device.create_buffer(64, "total"), device.create_buffer(64, "weight")
    operands = {"total": total.view("float32", (16,)), "weight": weight.view("float32", (16,))}
    before = device.memory.use(), len(device.stream)
    with pytest.raises(OutOfDeviceMemory), device.direct_queue.record() as commands:
        commands.dispatch("fold", params={"workspace": 1000}, **operands)
        commands.dispatch("fold", params={"workspace": 5000}, **operands)
    assert (device.memory.use(), len(device.stream)) == before


def test_a_simulated_device_has_the_memory_of_its_gpu():
    device = SimulatedDevice(GPU_SPECS["rtx4090"], kernels=kernels())
    device.create_buffer(23 * 2**30, "weights")
    with pytest.raises(OutOfDeviceMemory, match=r"weights 23\.00 GiB"):
        device.create_buffer(2**31, "more")
    SimulatedDevice(GPU_SPECS["rtx4090"], memory=None).create_buffer(2**40)


@pytest.mark.parametrize("open_device", DEVICES)
def test_a_closed_device_holds_nothing(open_device):
    device = open_device()
    device.create_buffer(2**20)
    device.close()
    use = device.memory.use()
    assert use.used == 0 and not use.holders and use.peak >= 2**20
