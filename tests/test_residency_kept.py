"""Lists that repeat from pass to pass are recorded once; what is known of them is not asked again."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
import torch

from tests.models import PROMPT, Models, assert_clean, assert_equal, tiny
from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.queue import CommandQueue
from xinfer_lab.device.records import Dispatch
from xinfer_lab.residency.kept import KeptLists
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import greedy_run

PASSES = 7


def counting(asked: Counter[str]) -> KernelTable:
    """The package's kernels, which count how often each is asked whether a dispatch of it is sound."""
    table = KernelTable()
    for name in KERNELS:
        kernel = KERNELS[name]

        def check(operands, params, kernel=kernel):
            asked[kernel.name] += 1
            kernel.check(operands, params)

        table.register(dataclasses.replace(kernel, check=check))
    return table


@pytest.mark.parametrize(("layers", "pool", "lists"), [(4, None, 4), (4, 2, 4), (3, 2, 6)])
def test_a_layer_is_recorded_once_for_each_place_that_it_lies_in(
    models: Models, layers: int, pool: int | None, lists: int
) -> None:
    asked: Counter[str] = Counter()
    recorded: Counter[str] = Counter()
    spec = tiny(layers)

    def load(device):
        if pool is None:
            return QwenModel.load(models.path(spec), device, context=32)
        return QwenModel.load_streaming(models.path(spec), device, pool, context=32)

    with EmulatedDevice(kernels=counting(asked)) as device:
        run = greedy_run(load, device, PROMPT, PASSES)
        recorded.update(record.kernel for record in device.stream if isinstance(record, Dispatch))
    assert_clean(run)
    assert_equal(models.resident(spec, passes=PASSES, context=32), run)
    # The prompt's pass keeps nothing.
    assert asked["decoder_layer"] == layers + lists
    assert asked["lm_head"] == 2
    assert recorded["decoder_layer"] == layers * PASSES and recorded["lm_head"] == PASSES


def test_the_stream_says_the_same_as_if_nothing_were_kept(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, records = tiny(5), []
    for keeping in (True, False):
        if not keeping:
            monkeypatch.setattr(KeptLists, "run", anew)
        with EmulatedDevice() as device:
            greedy_run(
                lambda device: QwenModel.load_streaming(models.path(spec), device, 2, context=32), device, PROMPT, 4
            )
            records.append([dataclasses.replace(record, where="") for record in device.stream])
    assert records[0] == records[1]


def anew(self, key, label, fill, **params):
    """`KeptLists.run` without keeping."""
    queue: CommandQueue = self._queue
    with queue.record(label) as commands:
        fill(commands)


def test_lists_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xinfer_lab.residency.kept._MOST", 3)
    with EmulatedDevice() as device:
        x, up = device.create_buffer(8, "x"), device.create_upload_heap(8, "up")
        up.write(0, torch.zeros(2))
        kept = KeptLists(device.copy_queue)
        for turn in range(2):
            for key in range(7):
                kept.run(key, f"copy {key}", lambda commands: commands.copy(x, up))
                assert len(kept._lists) <= 3, turn
        device.wait_idle()
    assert len([record for record in device.stream if record.op == "copy"]) == 14
