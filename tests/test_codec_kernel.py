"""``decode_exponents`` keeps to its declaration, gives the codec's bytes, and takes whatever its operands may hold."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel_cases import Case, Watcher, declared, place
from tests.test_codec_round_trip import EVERY_PATTERN, normal, same
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.records import View
from xinfer_lab.device.tensors import aligned_bytes, slice_view
from xinfer_lab.residency.codec.encode import encode
from xinfer_lab.residency.codec.format import BLOCK, Coding, decode_workspace
from xinfer_lab.residency.codec.kernel import DECODE_EXPONENTS, decode_operands, decode_params, has_triton
from xinfer_lab.residency.kernels import DECODER_LAYER

WEIGHTS = {
    "one block": normal(BLOCK),
    "less than a block": normal(1001),
    "some blocks and a rest": normal(3 * BLOCK + 13, seed=1),
    "more blocks and a rest": normal(7 * BLOCK + 13, seed=2),
    "nothing escapes": torch.arange(5003).remainder(7).add(118).mul(128).to(torch.int16).view(torch.bfloat16),
    "all patterns": torch.cat([normal(600_000), EVERY_PATTERN]),
}
CASES = [(name, width) for name in WEIGHTS for width in (3, 4)]


def case_of(weights: torch.Tensor, width: int) -> tuple[Case, torch.Tensor]:
    """A dispatch that decodes ``weights``, and its arena, with random bytes wherever nothing was put."""
    coding, encoded = encode(weights, width)
    assert coding is not None
    views, size = place({"encoded": ((encoded.numel(),), "uint8"), "out": ((coding.count,), "bfloat16")})
    source = views["encoded"]
    operands = decode_operands(coding, "arena", source.offset, views["out"])
    arena = aligned_bytes(size)
    arena.copy_(torch.randint(256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(7)))
    for name, section in coding.sections.items():
        arena[operands[name].offset :][: section.nbytes] = encoded[section.offset :][: section.nbytes]
    return Case(f"{width} bits", DECODE_EXPONENTS, operands, decode_params(coding), size), arena


def run(case: Case, arena: torch.Tensor) -> torch.Tensor:
    after = aligned_bytes(case.size).to(arena.device)
    after.copy_(arena)
    with torch.inference_mode():
        case.kernel.run({name: slice_view({"arena": after}, view) for name, view in case.operands.items()}, case.params)
    return after


@pytest.mark.parametrize(("name", "width"), CASES)
def test_the_kernel_writes_the_weights_and_nothing_else(name: str, width: int) -> None:
    case, arena = case_of(WEIGHTS[name], width)
    _, writes = declared(case)
    after = run(case, arena)
    assert same(slice_view({"arena": after}, case.operands["out"]), WEIGHTS[name])
    assert torch.equal(after[~writes], arena[~writes])


@pytest.mark.parametrize(("name", "width"), CASES)
def test_undeclared_bytes_and_what_was_there_before_change_nothing(name: str, width: int) -> None:
    case, arena = case_of(WEIGHTS[name], width)
    reads, writes = declared(case)
    for fill in (0x00, 0xFF, 0x55):
        others = arena.clone()
        others[~reads] = fill
        assert same(slice_view({"arena": run(case, others)}, case.operands["out"]), WEIGHTS[name])
    assert not (reads & writes).any()


@pytest.mark.parametrize(("name", "width"), CASES)
def test_each_operand_matters(name: str, width: int) -> None:
    case, arena = case_of(WEIGHTS[name], width)
    right = slice_view({"arena": run(case, arena)}, case.operands["out"])
    for operand, view in case.operands.items():
        if operand == "out":
            continue
        changed = arena.clone()
        target = slice_view({"arena": changed}, view)
        target.copy_(target + 1 if operand == "offsets" else target ^ 0x2A)
        assert not same(slice_view({"arena": run(case, changed)}, case.operands["out"]), right), operand


@pytest.mark.parametrize(("name", "width"), CASES[:10])
def test_operations_touch_exactly_what_is_declared(name: str, width: int) -> None:
    case, arena = case_of(WEIGHTS[name], width)
    reads, writes = declared(case)
    tensors = {operand: slice_view({"arena": arena}, view) for operand, view in case.operands.items()}
    with torch.inference_mode(), Watcher(arena) as watcher:
        case.kernel.run(tensors, case.params)
    assert torch.equal(watcher.seen(watcher.writes)[: case.size], writes)
    assert torch.equal(watcher.seen(watcher.reads)[: case.size], reads)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 2 * BLOCK + 50), escapes=st.integers(0, 40),
       width=st.sampled_from([1, 2, 3, 4]))  # fmt: skip
def test_bytes_that_were_never_encoded_decode_to_something(seed: int, count: int, escapes: int, width: int) -> None:
    """Where a wait is missing, the kernel meets whatever is there: it must not read anywhere else, or stop."""
    coding = Coding(width, 256 - 2**width, count, min(escapes, count))
    views, size = place({"encoded": ((coding.nbytes,), "uint8"), "out": ((count,), "bfloat16")})
    operands = decode_operands(coding, "arena", views["encoded"].offset, views["out"])
    case = Case("drawn", DECODE_EXPONENTS, operands, decode_params(coding), size)
    _, writes = declared(case)
    arena = aligned_bytes(size)
    arena.copy_(torch.randint(256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)))
    after = run(case, arena)
    assert torch.equal(after[~writes], arena[~writes])
    signs = slice_view({"arena": arena}, operands["sign_mantissa"])
    out = slice_view({"arena": after}, operands["out"]).view(torch.int16)
    assert torch.equal((out >> 8).bitwise_and_(0x80).bitwise_or_(out & 0x7F).to(torch.uint8), signs)


def test_what_it_costs() -> None:
    case, _ = case_of(WEIGHTS["some blocks and a rest"], 3)
    count = 3 * BLOCK + 13
    cost = case.kernel.cost(case.operands, case.params)
    assert cost.flops == 0
    assert cost.bytes == sum(view.nbytes for view in case.operands.values()) > count * (2 + 11 / 8)
    assert case.kernel.workspace(case.operands, case.params) == decode_workspace(count)


def bent(change: str, case: Case) -> Case:
    operands, params = dict(case.operands), dict(case.params)
    name, _, how = change.partition(" ")
    match how:
        case "missing":
            (operands if name in operands else params).pop(name)
        case "short":
            operands[name] = dataclasses.replace(operands[name], shape=(operands[name].shape[0] - 1,))
        case "wide":
            operands[name] = dataclasses.replace(operands[name], dtype="int64")
        case "flat":
            operands[name] = dataclasses.replace(operands[name], shape=(*operands[name].shape, 1))
        case "extra":
            operands["more"] = operands[name]
        case _:
            params[name] = {"none": None, "text": "3", "low": -1, "high": 300, "zero": 0, "five": 5}[how]
    return dataclasses.replace(case, operands=operands, params=params)


@pytest.mark.parametrize(
    "change",
    ["sign_mantissa missing", "codes missing", "out missing", "offsets missing", "escapes missing", "width missing",
     "base missing", "sign_mantissa short", "codes short", "out short", "offsets short", "codes wide", "out wide",
     "escapes wide", "offsets wide", "out flat", "escapes flat", "out extra", "width none", "width text", "width five",
     "width zero", "base none", "base low", "base high"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(change: str) -> None:
    case = bent(change, case_of(WEIGHTS["some blocks and a rest"], 3)[0])
    with pytest.raises(KernelError, match=r"^decode_exponents: "):
        case.kernel.check(case.operands, case.params)


def test_more_escapes_than_weights_are_refused() -> None:
    case, _ = case_of(WEIGHTS["less than a block"], 3)
    operands = {**case.operands, "escapes": View("arena", 0, (1002,), "uint8")}
    with pytest.raises(KernelError, match="1002 escapes are more than the 1001 weights"):
        case.kernel.check(operands, case.params)


def test_a_device_knows_the_kernel_wherever_it_knows_a_layer() -> None:
    from xinfer_lab.device.emulated import EmulatedDevice

    with EmulatedDevice() as device:
        assert device.kernels[DECODE_EXPONENTS.name] is DECODE_EXPONENTS and DECODER_LAYER.name in device.kernels


# On a GPU


@pytest.mark.cuda
def test_this_gpu_has_triton() -> None:
    """Without it the tests below would look at the torch operations a second time."""
    assert has_triton()


@pytest.mark.cuda
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_gpu_writes_the_same_bytes(name: str, width: int) -> None:
    coding, _ = encode(WEIGHTS[name], width)
    if coding is None:
        assert width <= 2
        return
    case, arena = case_of(WEIGHTS[name], width)
    _, writes = declared(case)
    after = run(case, arena.cuda()).cpu()
    assert same(slice_view({"arena": after}, case.operands["out"]), WEIGHTS[name])
    assert torch.equal(after[~writes], arena[~writes])


@pytest.mark.cuda
@pytest.mark.parametrize("count", [1, 7, 9, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 333, 9 * BLOCK])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_gpu_makes_the_same_of_bytes_that_were_never_encoded(count: int, width: int) -> None:
    for escapes in {0, 1, min(count, 40)}:
        coding = Coding(width, 256 - 2**width, count, escapes)
        views, size = place({"encoded": ((coding.nbytes,), "uint8"), "out": ((count,), "bfloat16")})
        operands = decode_operands(coding, "arena", views["encoded"].offset, views["out"])
        case = Case("drawn", DECODE_EXPONENTS, operands, decode_params(coding), size)
        arena = aligned_bytes(size)
        arena.copy_(torch.randint(256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(count)))
        assert torch.equal(run(case, arena.cuda()).cpu(), run(case, arena))
