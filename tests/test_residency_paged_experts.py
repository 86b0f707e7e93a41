"""Experts in pages: fetched when tokens chose them, or guessed ahead; the bytes are those of the resident run."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import PROMPT, Models, assert_clean, assert_equal, tiny
from tests.mutants import Statement, statements, without
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import DeviceError, KernelError
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.records import Copy, Dispatch, View
from xinfer_lab.paging.statistics import PoolStatistics
from xinfer_lab.qwen2 import Checkpoint, SyntheticSpec, expert_layout
from xinfer_lab.residency import mixture, paged_experts
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.mixture import GuessStatistics
from xinfer_lab.residency.mixture_kernels import EXPERTS_TOGETHER
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_experts import ExpertStatistics
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights

SPEC = tiny(4, experts=8)
PAGE = 1024
SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")


class Outcome:
    """A run, and what its pool and its guesses came to."""

    run: Run
    pool: PoolStatistics
    experts: ExpertStatistics
    guesses: GuessStatistics


def paged(
    models: Models, spec: SyntheticSpec, device: EmulatedDevice, feed: tuple[torch.Tensor, ...], room: float,
    page_bytes: int = PAGE, policy: str = "lru", guess: bool = False,
) -> Outcome:  # fmt: skip
    """``feed`` through a model whose page pool has room for ``room`` experts."""
    found = Outcome()

    class Watched(QwenModel):
        def close(self) -> None:
            assert self.mixture is not None
            found.pool, found.guesses = self.mixture.experts.pool.statistics(), self.mixture.guesses
            found.experts = self.mixture.experts.statistics()
            super().close()

    def load(device):
        with Checkpoint.open(models.path(spec)) as checkpoint:
            pages = -(-expert_layout(checkpoint.config).nbytes // page_bytes)
            made = paged_experts.paged_experts(int(room * pages) * page_bytes, policy, page_bytes, guess=guess)
            return Watched(
                CheckpointWeights(checkpoint), device, resident_layers(), context=16, batch=feed[0].shape[0],
                make_experts=made,
            )  # fmt: skip

    found.run = run_fixed(load, device, feed)
    return found


@pytest.mark.parametrize("guess", [False, True], ids=["on demand", "guessed"])
@pytest.mark.parametrize("policy", ["lru", "clock"])
@pytest.mark.parametrize("room", [2, 3.5, 9, 32, 100])
def test_any_room_gives_the_bytes_of_the_resident_run(models: Models, room: float, policy: str, guess: bool) -> None:
    resident = models.resident(SPEC, passes=6, context=16)
    with EmulatedDevice(schedule="random(3)") as device:
        found = paged(models, SPEC, device, resident.tokens, room, policy=policy, guess=guess)
    assert_equal(resident, found.run)
    assert_clean(found.run)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_any_schedule_and_a_narrow_type(models: Models, schedule: str) -> None:
    spec = tiny(3, experts=6, dtype="bfloat16")
    prompt = torch.randint(64, (3, 4), generator=torch.Generator().manual_seed(1))
    resident = models.resident(spec, prompt, passes=4, context=16, batch=3)
    with EmulatedDevice(schedule=schedule) as device:
        found = paged(models, spec, device, resident.tokens, 3, 256, guess=True)
    assert_equal(resident, found.run)
    assert_clean(found.run)


@settings(max_examples=12)
@given(
    experts=st.integers(1, 7), per_token=st.integers(1, 3), layers=st.integers(1, 4), room=st.floats(2, 12),
    guess=st.booleans(), seed=st.integers(0, 3),
)  # fmt: skip
def test_any_model_in_any_room(
    models: Models, experts: int, per_token: int, layers: int, room: float, guess: bool, seed: int
) -> None:
    spec = tiny(layers, experts=experts, experts_per_token=min(experts, per_token), seed=seed)
    resident = models.resident(spec, passes=4, context=16)
    with EmulatedDevice(schedule=f"random({seed})") as device:
        found = paged(models, spec, device, resident.tokens, room, guess=guess)
    assert_equal(resident, found.run)
    assert_clean(found.run)


def brought(device: EmulatedDevice) -> list[str]:
    return [r.label.removeprefix("bring expert ") for r in device.stream if isinstance(r, Copy) and "bring" in r.label]


def called(device: EmulatedDevice) -> list[str]:
    found = []
    for record in device.stream:
        if isinstance(record, Dispatch) and record.kernel == "expert":
            found.append(record.label.removeprefix("expert "))
        if isinstance(record, Dispatch) and record.kernel == "experts_together":
            layer, chosen = record.label.removeprefix("experts ").split(": ")
            found += [f"{layer},{expert}" for expert in chosen.split(", ")]
    return found


def test_on_demand_moves_chosen_experts_alone_each_once_where_all_fit(models: Models) -> None:
    resident = models.resident(SPEC, passes=6, context=16)
    with EmulatedDevice() as device:
        found = paged(models, SPEC, device, resident.tokens, 32)
        assert sorted(brought(device)) == sorted(set(called(device)))
        assert found.run.uploads == 0  # of layers
    statistics = found.pool
    assert statistics.acquisitions == len(called(device))
    counts = found.experts
    assert (counts.missing, counts.ahead) == (len(brought(device)), 0)
    assert counts.there == len(called(device)) - len(brought(device)) > 0
    assert counts.hit_rate == counts.there / len(called(device))
    assert statistics.evictions == statistics.write_backs == statistics.bytes_to_host == 0
    with Checkpoint.open(models.path(SPEC)) as checkpoint:
        assert statistics.bytes_to_device == len(brought(device)) * expert_layout(checkpoint.config).nbytes


def test_the_copies_of_a_layers_experts_go_out_before_the_first_of_them_is_computed(models: Models) -> None:
    resident = models.resident(SPEC, passes=1, context=16)
    with EmulatedDevice() as device:
        paged(models, SPEC, device, resident.tokens, 32)
        events = [
            "copy" if isinstance(r, Copy) else "expert"
            for r in device.stream
            if (isinstance(r, Copy) and "bring expert 0," in r.label)
            or (isinstance(r, Dispatch) and r.kernel == "expert" and r.label.startswith("expert 0,"))
        ]
    count = events.count("copy")
    assert count > 2 and events == ["copy"] * count + ["expert"] * count


def test_the_first_expert_of_a_layer_does_not_wait_for_the_copies_of_the_others(models: Models) -> None:
    resident = models.resident(SPEC, passes=1, context=16)
    with EmulatedDevice() as device:
        paged(models, SPEC, device, resident.tokens, 32)
        records = list(device.stream)
        order = Ordering(device.stream)
    copies = [i for i, r in enumerate(records) if isinstance(r, Copy) and "bring expert 0," in r.label]
    computed = [
        i for i, r in enumerate(records)
        if isinstance(r, Dispatch) and r.kernel == "expert" and r.label.startswith("expert 0,")
    ]  # fmt: skip
    for number, dispatch in enumerate(computed):
        assert order.before(copies[number], dispatch)
        assert not any(order.before(copy, dispatch) for copy in copies[number + 1 :])


def test_with_room_for_two_the_next_expert_is_fetched_while_one_is_computed(models: Models) -> None:
    resident = models.resident(SPEC, passes=1, context=16)
    with EmulatedDevice() as device:
        paged(models, SPEC, device, resident.tokens, 2)
        events = [
            (r.label.removeprefix("bring "), isinstance(r, Copy))
            for r in device.stream
            if (isinstance(r, Copy) and "bring expert" in r.label) or (isinstance(r, Dispatch) and r.kernel == "expert")
        ]
    for layer in range(4):
        names = [name for name, copy in events if not copy and name.startswith(f"expert {layer},")]
        for name, following in itertools.pairwise(names):
            assert events.index((following, True)) < events.index((name, False))


def test_what_is_there_and_was_chosen_stays_until_its_use(models: Models) -> None:
    with EmulatedDevice() as device, Checkpoint.open(models.path(SPEC)) as checkpoint:
        weights = CheckpointWeights(checkpoint)
        device.sources.mount(weights)
        pages = -(-expert_layout(checkpoint.config).nbytes // PAGE)
        source = paged_experts.paged_experts(4 * pages * PAGE, "lru", PAGE)(device, weights)

        def use(*experts: int) -> None:
            source.expect(0, experts, certain=True)
            for expert in experts:
                source.ensure(0, expert)
                source.release(0, expert)

        use(6)
        use(1, 4, 5)
        use(2, 3, 6)  # the least recent is 6, and the first that would go
        device.wait_idle()
        assert brought(device) == [f"0,{expert}" for expert in (6, 1, 4, 5, 2, 3)]
        assert source.uploads == 6
        source.close()


def guessed_copies(device: EmulatedDevice) -> list[str]:
    """The experts that were fetched before their layer was routed in that pass."""
    found, routed = [], -1
    for record in device.stream:
        if isinstance(record, Dispatch) and record.label.startswith("route "):
            routed = int(record.label.removeprefix("route "))
        if isinstance(record, Copy) and record.label.startswith("bring expert "):
            name = record.label.removeprefix("bring expert ")
            if int(name.partition(",")[0]) != routed:
                found.append(name)
    return found


def test_guesses_are_counted_and_right_guesses_are_fetched_before_the_router_says_so(models: Models) -> None:
    resident = models.resident(SPEC, passes=6, context=16)
    with EmulatedDevice() as device:
        demand = paged(models, SPEC, device, resident.tokens, 32)
        assert guessed_copies(device) == []
    with EmulatedDevice() as device:
        guessed = paged(models, SPEC, device, resident.tokens, 32, guess=True)
        early = guessed_copies(device)
    assert demand.guesses == GuessStatistics()
    assert 0 < guessed.guesses.right <= min(guessed.guesses.guessed, guessed.guesses.chose)
    assert early
    assert demand.experts.ahead == 0 < guessed.experts.ahead <= guessed.guesses.right
    assert guessed.experts.hit_rate > demand.experts.hit_rate
    assert guessed.pool.bytes_to_device >= demand.pool.bytes_to_device


def test_a_pool_without_room_for_two_experts_and_an_impossible_policy_are_refused(models: Models) -> None:
    resident = models.resident(SPEC, passes=1, context=16)
    with EmulatedDevice() as device, pytest.raises(RequestError, match="2 experts of"):
        paged(models, SPEC, device, resident.tokens, 1)
    with pytest.raises(RequestError, match="belady"):
        paged_experts.paged_experts(2**20, "belady")


def test_a_pass_that_fails_leaves_experts_that_the_next_one_can_use(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident = models.resident(SPEC, passes=2, context=16)
    with EmulatedDevice() as device, Checkpoint.open(models.path(SPEC)) as checkpoint:
        pages = -(-expert_layout(checkpoint.config).nbytes // PAGE)
        made = paged_experts.paged_experts(10 * pages * PAGE, "lru", PAGE, guess=True)
        weights = CheckpointWeights(checkpoint)
        with QwenModel(weights, device, resident_layers(), context=16, make_experts=made) as model:
            first = model.forward(PROMPT)
            before, calls = mixture.Mixture._run_together, []

            def failing(self, layer, chosen, experts, mixed):
                calls.append(layer)
                if len(calls) == 2:
                    self.experts.release_together(layer, chosen)
                    raise RuntimeError("as if it failed")
                before(self, layer, chosen, experts, mixed)

            monkeypatch.setattr(mixture.Mixture, "_run_together", failing)
            with pytest.raises(RuntimeError, match="as if it failed"):
                model.forward(resident.tokens[1])
            monkeypatch.setattr(mixture.Mixture, "_run_together", before)
            second = model.forward(resident.tokens[1])
        assert device.findings().hazards == ()
    assert_equal(resident, [first, second])


@pytest.mark.parametrize("statement", [s for s in statements(mixture) if s.function == "run"], ids=str)
def test_a_fence_that_the_router_lacks_is_found(models: Models, statement: Statement) -> None:
    resident = models.resident(SPEC, passes=1, context=16)
    with without(statement), EmulatedDevice(on_hazard="raise") as device, pytest.raises(DeviceError):
        paged(models, SPEC, device, resident.tokens, 8)


def test_a_rows_experts_run_in_one_dispatch_where_the_pool_holds_them_and_one_by_one_where_not(models: Models) -> None:
    resident = models.resident(SPEC, passes=4, context=16)
    for room, kernel in ((32, "experts_together"), (2, "expert")):
        with EmulatedDevice() as device:
            found = paged(models, SPEC, device, resident.tokens, room)
        assert_equal(resident, found.run)
        first = next(
            index for index, r in enumerate(device.stream) if isinstance(r, Dispatch) and r.kernel == "lm_head"
        )
        steps = {r.kernel for r in device.stream.records[first:] if isinstance(r, Dispatch) and "expert" in r.kernel}
        assert steps == {kernel, "shared_expert"}


def test_experts_that_are_not_laid_out_alike_are_refused() -> None:
    each = {"gate_proj.weight": (28, 20), "up_proj.weight": (28, 20), "down_proj.weight": (20, 28)}
    views = {"normed": View("x", 0, (1, 20), "float32"), "mixed": View("x", 256, (1, 20), "float32"),
             "scores": View("x", 512, (2,), "float32")}  # fmt: skip
    for place in range(2):
        for number, (name, shape) in enumerate(each.items()):
            views[f"{place}.{name}"] = View("pool", place * 2**16 + number * 4096, shape, "float32")
    EXPERTS_TOGETHER.check(views, {})
    moved = {**views, "1.up_proj.weight": View("pool", 2**16 + 8192, (28, 20), "float32")}
    with pytest.raises(KernelError, match=r"'1.up_proj.weight' does not lie"):
        EXPERTS_TOGETHER.check(moved, {})
