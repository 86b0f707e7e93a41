"""The kernels of a layer with experts: their declarations, proven by effect and by watching every tensor operation."""

from __future__ import annotations

import pytest
import torch

from tests.kernel_cases import Case, Watcher, declared, place, run
from tests.test_residency_kernels import layer_case
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Kernel, Params
from xinfer_lab.device.records import View
from xinfer_lab.device.tensors import aligned_bytes, slice_view
from xinfer_lab.residency.kernels import ATTENTION, ATTENTION_WEIGHTS, COMBINE, EXPERT, ROUTE, SHARED_EXPERT

SIZE, WIDE, EXPERTS, ROWS = 20, 28, 7, 6
MLP = {"gate_proj.weight": (WIDE, SIZE), "up_proj.weight": (WIDE, SIZE), "down_proj.weight": (SIZE, WIDE)}
ROUTE_PARAMS: Params = {"rms_norm_eps": 1e-6, "renormalise": True}


def case(name: str, kernel: Kernel, shapes: dict[str, tuple[int, ...]], params: Params, dtype: str) -> Case:
    views, size = place({
        key: (shape, "int64" if key in ("experts", "rows") else dtype) for key, shape in shapes.items()
    })  # fmt: skip
    return Case(f"{name}, {dtype}", kernel, views, params, size)


def cases(dtype: str) -> list[Case]:
    rows, choices = (ROWS, SIZE), 2 * ROWS
    routed = {"experts": (choices,), "rows": (choices,), "scores": (choices,)}
    route = {"hidden": (2, 3, SIZE), "norm": (SIZE,), "gate": (EXPERTS, SIZE), "normed": rows, **routed}
    shared = {f"mlp.shared_expert.{name}": shape for name, shape in MLP.items()}
    shared |= {"normed": rows, "mlp.shared_expert_gate.weight": (1, SIZE), "mixed": rows}
    expert = {"normed": rows, "rows": (4,), "scores": (4,), **MLP, "mixed": rows}
    return [
        case("route", ROUTE, route, ROUTE_PARAMS, dtype),
        case("route, as they are", ROUTE, route, {**ROUTE_PARAMS, "renormalise": False}, dtype),
        case("shared expert", SHARED_EXPERT, shared, {}, dtype),
        case("expert", EXPERT, expert, {}, dtype),
        case("expert, one row", EXPERT, {**expert, "rows": (1,), "scores": (1,)}, {}, dtype),
        case("combine", COMBINE, {"mixed": rows, "hidden": (2, 3, SIZE)}, {}, dtype),
    ]


def half(whole: Case) -> Case:
    names = ("hidden", "kv", *ATTENTION_WEIGHTS)
    return Case(f"attention: {whole}", ATTENTION, {n: whole.operands[n] for n in names}, whole.params, whole.size)


CASES = [
    *cases("float32"), *cases("bfloat16"), half(layer_case("decode")), half(layer_case("chunk", tokens=4, batch=2)),
    half(layer_case("window, bf16", window=3, dtype="bfloat16")),
]  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES, ids=str)
RESULTS = {"route": ("normed", "scores"), "shared_expert": ("mixed",), "expert": ("mixed",)}


def filled(case: Case) -> torch.Tensor:
    """The arena: sensible operands between guard bands of random bytes."""
    generator = torch.Generator().manual_seed(0)
    arena = aligned_bytes(case.size)
    arena.copy_(torch.randint(256, (case.size,), dtype=torch.uint8, generator=generator))
    for view in case.operands.values():
        if view.dtype == "int64":
            made = torch.randperm(ROWS, generator=generator)[: view.shape[0]].repeat(2)[: view.shape[0]]
        else:
            made = torch.randn(view.shape, generator=generator)
        slice_view({"arena": arena}, view).copy_(made)
    return arena


@every_case
def test_only_declared_bytes_are_written_and_they_all_are(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    after = run(case, arena)
    assert torch.equal(after[~writes], arena[~writes])
    for name in RESULTS.get(case.kernel.name, ("hidden",)):
        assert not slice_view({"arena": after}, case.operands[name]).isnan().any()
    arena[writes & ~reads] = 0xFF
    again = run(case, arena)
    assert torch.equal(again[writes], after[writes])


@every_case
def test_undeclared_bytes_change_nothing(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    right = run(case, arena)[writes]
    for fill in (0x00, 0xFF):
        others = arena.clone()
        others[~(reads | writes)] = fill
        assert torch.equal(run(case, others)[writes], right)


@every_case
def test_each_operand_that_is_read_matters(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    right = run(case, arena)
    for name, view in case.operands.items():
        if name == "kv" or not reads[view.offset : view.offset + view.nbytes].all():
            continue
        changed = arena.clone()
        target = slice_view({"arena": changed}, view)
        target.copy_((target + 1) % ROWS if view.dtype == "int64" else 3 - 2 * target)
        assert not torch.equal(run(case, changed)[writes], right[writes]), name


@every_case
def test_operations_touch_exactly_what_is_declared(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    run(case, arena)
    tensors = {name: slice_view({"arena": arena}, view) for name, view in case.operands.items()}
    with torch.inference_mode(), Watcher(arena) as watcher:
        case.kernel.run(tensors, case.params)
    assert torch.equal(watcher.seen(watcher.writes)[: case.size], writes)
    assert torch.equal(watcher.seen(watcher.reads)[: case.size], reads)


@every_case
def test_costs_are_declared(case: Case) -> None:
    cost = case.kernel.cost(case.operands, case.params)
    assert cost.bytes > 0 and case.kernel.workspace(case.operands, case.params) > 0
    assert (cost.flops > 0) == (case.kernel is not COMBINE)


@every_case
def test_operands_that_do_not_fit_are_refused_by_name(case: Case) -> None:
    kernel = case.kernel
    for name, view in case.operands.items():
        rest = {key: other for key, other in case.operands.items() if key != name}
        with pytest.raises(KernelError, match=kernel.name):
            kernel.check(rest, case.params)
        others = [((*view.shape, 1), view.dtype), (view.shape, "uint8")]
        if name not in ("gate", "kv"):  # experts to choose from, and room for tokens: as many as one likes
            others.append(((view.shape[0] + 100, *view.shape[1:]), view.dtype))
        for shape, dtype in others:
            other = View(view.buffer, view.offset, shape, dtype)
            with pytest.raises(KernelError, match=f"^{kernel.name}: "):
                kernel.check({**case.operands, name: other}, case.params)
    with pytest.raises(KernelError, match="parameters"):
        kernel.check(case.operands, {**case.params, "more": 1})


@pytest.mark.parametrize(
    "change", [{"renormalise": 1}, {"renormalise": None}, {"rms_norm_eps": 0.0}, {"rms_norm_eps": "small"}]
)
def test_parameters_of_the_router_are_refused_by_name(change: dict[str, object]) -> None:
    with pytest.raises(KernelError, match=f"^route: {next(iter(change))}"):
        ROUTE.check(CASES[0].operands, {**ROUTE_PARAMS, **change})  # type: ignore[dict-item]
