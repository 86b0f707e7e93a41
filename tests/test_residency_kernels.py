"""The kernels' declarations, proven: by effect (guard bands, perturbed bytes) and by watching every tensor operation.

Hazards, budgets and states are worked out from these declarations alone, so they have to be exact.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel_cases import GUARD, Case, Watcher, declared, mask, place, run
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.records import DTYPE_BYTES, Span, View
from xinfer_lab.device.tensors import aligned_bytes, slice_view
from xinfer_lab.qwen2 import LayerSpec, costs
from xinfer_lab.qwen2.attention import DeviceTraits
from xinfer_lab.residency.kernels import DECODER_LAYER, EMBED, LAYER_WEIGHTS, LM_HEAD, layer_params


def layer_case(
    name: str, *, batch: int = 1, tokens: int = 1, position: int = 5, capacity: int = 12, window: int | None = None,
    dtype: str = "float32", heads: int = 4, kv_heads: int = 2, head_dim: int = 6, hidden: int = 20, wide: int = 28,
) -> Case:  # fmt: skip
    queries, keys = heads * head_dim, kv_heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "hidden": (batch, tokens, hidden),
        "kv": (2, capacity, batch, kv_heads, head_dim),
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.q_proj.bias": (queries,),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.k_proj.bias": (keys,),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.v_proj.bias": (keys,),
        "self_attn.o_proj.weight": (hidden, queries),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (wide, hidden),
        "mlp.up_proj.weight": (wide, hidden),
        "mlp.down_proj.weight": (hidden, wide),
    }
    views, size = place({key: (shape, dtype) for key, shape in shapes.items()})
    spec = LayerSpec(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim, rms_norm_eps=1e-6,
        rope_theta=1e4, window=window,
    )  # fmt: skip
    return Case(name, DECODER_LAYER, views, layer_params(spec, position), size)


def embed_case(name: str, batch: int, tokens: int, dtype: str = "float32") -> Case:
    views, size = place({
        "tokens": ((batch, tokens), "int64"), "weight": ((11, 20), dtype), "out": ((batch, tokens, 20), dtype),
    })  # fmt: skip
    return Case(name, EMBED, views, {}, size)


def head_case(name: str, batch: int, tokens: int, positions: int, dtype: str = "float32") -> Case:
    views, size = place({
        "hidden": ((batch, tokens, 20), dtype), "norm": ((20,), dtype), "weight": ((11, 20), dtype),
        "out": ((batch, positions, 11), dtype),
    })  # fmt: skip
    return Case(name, LM_HEAD, views, {"rms_norm_eps": 1e-6}, size)


CASES = [
    layer_case("decode"),
    layer_case("decode, first token", position=0),
    layer_case("decode, last place", position=11),
    layer_case("decode, batch", batch=3),
    layer_case("decode, window", window=3),
    layer_case("decode, window, batch", window=3, batch=2),
    layer_case("prefill", tokens=5, position=0),
    layer_case("prefill, batch", tokens=5, position=0, batch=2),
    layer_case("prefill, window", tokens=5, position=0, window=2),
    layer_case("chunk", tokens=4),
    layer_case("chunk, window", tokens=4, window=3, batch=2),
    layer_case("chunk, wide window", tokens=4, window=100),
    layer_case("one head", heads=1, kv_heads=1),
    layer_case("all heads", heads=3, kv_heads=3, tokens=2),
    layer_case("decode, bf16", dtype="bfloat16"),
    layer_case("chunk, bf16, window", dtype="bfloat16", tokens=4, window=3),
    layer_case("chunk, fp16", dtype="float16", tokens=4),
    embed_case("embed", 1, 1),
    embed_case("embed, batch", 2, 3),
    embed_case("embed, bf16", 2, 3, "bfloat16"),
    head_case("head", 1, 1, 1),
    head_case("head, last of many", 1, 5, 1),
    head_case("head, some, batch", 3, 5, 2),
    head_case("head, all, bf16", 2, 3, 3, "bfloat16"),
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def values(case: Case, view: View, generator: torch.Generator) -> torch.Tensor:
    """Values that a kernel can work with: token ids of the table (shapes do not tell), or numbers near 1 in size."""
    if view.dtype == "int64":
        return torch.randint(case.operands["weight"].shape[0], view.shape, generator=generator)
    return torch.randn(view.shape, generator=generator).to(getattr(torch, view.dtype))


def filled(case: Case, seed: int = 0) -> torch.Tensor:
    """The arena: sensible operands between guard bands of random bytes."""
    generator = torch.Generator().manual_seed(seed)
    arena = aligned_bytes(case.size)
    arena.copy_(torch.randint(256, (case.size,), dtype=torch.uint8, generator=generator))
    for view in case.operands.values():
        slice_view({"arena": arena}, view).copy_(values(case, view, generator))
    return arena


# By effect


@every_case
def test_only_declared_bytes_are_written(case: Case) -> None:
    _, writes = declared(case)
    arena = filled(case)
    after = run(case, arena)
    assert torch.equal(after[~writes], arena[~writes])
    assert not slice_view({"arena": after}, case.operands[result(case)]).isnan().any()


@every_case
def test_every_declared_byte_is_written(case: Case) -> None:
    """Whatever a byte held that is written and not read first, it holds the result afterwards."""
    _, writes = declared(case)
    arena = filled(case)
    before = mask(case.size, read_before_written(case))
    right = run(case, arena)
    arena[writes & ~before] = 0xFF
    after = run(case, arena)
    assert torch.equal(after[writes], right[writes])


@every_case
def test_undeclared_bytes_change_nothing(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    right = run(case, arena)[writes]
    for fill in (0x00, 0xFF, None):
        others = arena.clone()
        outside = ~(reads | writes)
        if fill is None:
            others[outside] ^= 0x55
        else:
            others[outside] = fill
        assert torch.equal(run(case, others)[writes], right)


@settings(max_examples=150)
@given(
    batch=st.integers(1, 3),
    tokens=st.integers(1, 4),
    position=st.integers(0, 6),
    capacity=st.integers(1, 9),
    window=st.none() | st.integers(1, 8),
    heads=st.integers(1, 4),
    kv_heads=st.integers(1, 3),
    head_dim=st.integers(1, 9),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_any_layer_that_passes_the_check_keeps_to_its_declaration(
    batch: int, tokens: int, position: int, capacity: int, window: int | None, heads: int, kv_heads: int, head_dim: int,
    dtype: str,
) -> None:  # fmt: skip
    case = layer_case(
        "drawn", batch=batch, tokens=tokens, position=position, capacity=capacity, window=window, heads=heads,
        kv_heads=kv_heads, head_dim=head_dim, hidden=6, wide=7, dtype=dtype,
    )  # fmt: skip
    if heads % kv_heads or head_dim % 2 or position + tokens > capacity:
        with pytest.raises(KernelError, match="decoder_layer: "):
            case.kernel.check(case.operands, case.params)
        return
    _, writes = declared(case)
    arena = filled(case)
    after = run(case, arena)
    assert torch.equal(after[~writes], arena[~writes])
    assert not slice_view({"arena": after}, case.operands["hidden"]).isnan().any()
    arena[~mask(case.size, read_before_written(case))] = 0xFF
    assert torch.equal(run(case, arena)[writes], after[writes])


def result(case: Case) -> str:
    return "hidden" if case.kernel is DECODER_LAYER else "out"


def read_before_written(case: Case) -> list[Span]:
    """What a kernel reads of the bytes that it finds: the declared reads but for the cache of its own new tokens."""
    spans = list(case.kernel.access(case.operands, case.params).reads)
    if case.kernel is not DECODER_LAYER:
        return spans
    kept = [span for span in spans if span not in token_spans(case, None)]
    return kept + [span for span in token_spans(case, "old") if span.size]


def token_spans(case: Case, which: str | None) -> list[Span]:
    """The cache's tokens that are seen (None), those of them that were there before ("old"), keys and values."""
    kv, position = case.operands["kv"], case.params["position"]
    window, tokens = case.params["window"], case.operands["hidden"].shape[1]
    first = 0 if window is None else max(0, position - window + 1)
    end = position if which == "old" else position + tokens
    token = kv.nbytes // 2 // kv.shape[1]
    return [
        Span("arena", kv.offset + half * (kv.nbytes // 2) + first * token, (end - first) * token) for half in (0, 1)
    ]


def reading_places(case: Case) -> Iterator[tuple[str, View]]:
    """Views of which each, changed, has to change the result: operands; used rows; single tokens of the cache."""
    if case.kernel is EMBED:
        yield "tokens", case.operands["tokens"]
        yield "weight", case.operands["weight"]
        return
    for name, view in case.operands.items():
        if name in ("kv", "out"):
            continue
        if name == "hidden":
            batch, tokens, size = view.shape
            used = tokens if case.kernel is DECODER_LAYER else case.operands["out"].shape[1]
            row = size * DTYPE_BYTES[view.dtype]
            for b in range(batch):
                for t in range(tokens - used, tokens):
                    yield f"hidden[{b}, {t}]", View("arena", view.offset + (b * tokens + t) * row, (size,), view.dtype)
        else:
            yield name, view
    if case.kernel is DECODER_LAYER:
        kv = case.operands["kv"]
        for half, span in zip(("key", "value"), token_spans(case, "old"), strict=True):
            token = kv.nbytes // 2 // kv.shape[1]
            per = token // DTYPE_BYTES[kv.dtype]
            for offset in range(span.offset, span.end, token):
                yield f"{half} at {offset}", View("arena", offset, (per,), kv.dtype)


@every_case
def test_each_declared_operand_matters(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    right = run(case, arena)
    kinds = 0
    for name, view in reading_places(case):
        assert reads[view.offset : view.offset + view.nbytes].all()
        changed = arena.clone()
        target = slice_view({"arena": changed}, view)
        target.copy_((target + 1) % 11 if view.dtype == "int64" else 3 - 2 * target)
        if case.name == "decode, first token" and "q_proj" in name:
            continue  # the only key gets all of the attention, whatever is asked for
        assert not torch.equal(run(case, changed)[writes], right[writes]), name
        kinds += 1
    assert kinds


# By watching


@every_case
def test_operations_touch_exactly_what_is_declared(case: Case) -> None:
    reads, writes = declared(case)
    arena = filled(case)
    # A copy first: constants that are made once and kept are no part of a dispatch.
    run(case, arena)
    tensors = {name: slice_view({"arena": arena}, view) for name, view in case.operands.items()}
    with torch.inference_mode(), Watcher(arena) as watcher:
        case.kernel.run(tensors, case.params)
    assert watcher.operations
    assert torch.equal(watcher.seen(watcher.writes)[: case.size], writes)
    assert torch.equal(watcher.seen(watcher.reads)[: case.size], reads)


def test_the_watcher_sees_reads_writes_and_nothing_in_views() -> None:
    arena = aligned_bytes(1024)
    floats = arena[:64].view(torch.float32).view(4, 4)
    with Watcher(arena) as watcher:
        floats.t()[1:]
        floats[:, 1].unsqueeze(0)
    assert not watcher.reads.any() and not watcher.writes.any()
    with Watcher(arena) as watcher:
        floats[1].add_(floats[:, 0])
        torch.mul(floats[3], 2, out=floats[2])
        floats[0, :2].copy_(floats[0, 2:])
    read, written = (watcher.seen(m)[:64].view(16, 4).all(-1).view(4, 4) for m in (watcher.reads, watcher.writes))
    assert written.tolist() == [[True, True, False, False], [True] * 4, [True] * 4, [False] * 4]
    assert read.tolist() == [[True, False, True, True], [True] * 4, [True] + [False] * 3, [True] * 4]


# Workspace: what `xinfer_lab.qwen2.costs` says, which its own tests measure


@pytest.mark.parametrize("flash", [True, False])
@every_case
def test_the_declared_workspace_holds_with_and_without_flash_attention(case: Case, flash: bool) -> None:
    declared_bytes = case.kernel.workspace(case.operands, case.params)
    if case.kernel is not DECODER_LAYER:
        assert declared_bytes > 0
        return
    hidden, spec = case.operands["hidden"], dict(case.params)
    position = spec.pop("position")
    work = costs.decoder_layer_work(
        LayerSpec.from_dict(spec), batch=hidden.shape[0], tokens=hidden.shape[1], position=position,
        hidden_size=hidden.shape[2], intermediate_size=case.operands["mlp.gate_proj.weight"].shape[0],
        dtype=getattr(torch, hidden.dtype), traits=DeviceTraits("cuda", flash=flash, bfloat16=True),
    )  # fmt: skip
    assert declared_bytes >= work.workspace
    cost = case.kernel.cost(case.operands, case.params)
    assert (cost.flops, cost.bytes) == (work.flops, work.bytes_read + work.bytes_written)


# Refusals


@pytest.mark.parametrize("case", [CASES[0], CASES[9], CASES[18], CASES[22]], ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_what_passes_the_check_runs(case: Case, data: st.DataObject) -> None:
    """Operands and parameters bent out of shape are refused by name, or they are fine."""
    operands, params = dict(case.operands), dict(case.params)
    for _ in range(data.draw(st.integers(1, 2))):
        if params and data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(params)))
            strange = [None, -1, 0, 1, 2, 3, 7, 2**40, 0.0, 0.5, -1.0, float("nan"), float("inf"), "3", True]
            params[name] = data.draw(st.sampled_from(strange))
            continue
        name = data.draw(st.sampled_from(sorted(operands)))
        view = operands[name]
        match data.draw(st.sampled_from(["drop", "extra", "dtype", "resize", "rank", "empty"])):
            case "drop":
                del operands[name]
                if not operands:
                    return
            case "extra":
                operands["extra"] = view
            case "dtype":
                dtype = data.draw(st.sampled_from(["float32", "float16", "int64", "uint8"]))
                operands[name] = dataclasses.replace(view, dtype=dtype)
            case "resize":
                axis = data.draw(st.integers(0, len(view.shape) - 1))
                shape = list(view.shape)
                shape[axis] = data.draw(st.integers(1, max(1, 2 * shape[axis])))
                operands[name] = dataclasses.replace(view, shape=tuple(shape))
            case "rank":
                operands[name] = dataclasses.replace(view, shape=(math.prod(view.shape),))
            case "empty":
                operands[name] = dataclasses.replace(view, shape=(0, *view.shape[1:]))
    bent = Case("bent", case.kernel, operands, params, 0)
    try:
        bent.kernel.check(bent.operands, bent.params)
    except KernelError as error:
        assert str(error).startswith(f"{case.kernel.name}: ")
        return
    # Operands of other sizes need other places.
    views, size = place({name: (view.shape, view.dtype) for name, view in operands.items()})
    bent = dataclasses.replace(bent, operands=views, size=size)
    _, writes = declared(bent)
    work = bent.kernel.cost(views, params)
    assert work.flops >= 0 and work.bytes > 0 and bent.kernel.workspace(views, params) >= 0
    arena = filled(bent)
    assert torch.equal(run(bent, arena)[~writes], arena[~writes])


def test_weights_are_the_layers_tensors_by_name() -> None:
    from tests.models import tiny
    from xinfer_lab.qwen2 import layer_layout

    names = [place.name for group in layer_layout(tiny(3).config()).groups for place in group.tensors]
    assert names == list(LAYER_WEIGHTS)


@given(
    offset=st.integers(0, 300),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_the_arena_has_guards_around_every_operand(offset: int, shape: list[int], dtype: str) -> None:
    views, size = place({"a": ((offset + 1,), "uint8"), "b": (tuple(shape), dtype)})
    spans = sorted((view.span for view in views.values()), key=lambda span: span.offset)
    assert spans[0].offset >= GUARD and spans[1].offset - spans[0].end >= GUARD and size - spans[1].end >= GUARD
    assert all(span.offset % 256 == 0 for span in spans)
