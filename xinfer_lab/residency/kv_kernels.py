"""The kernels of a paged KV cache: ``gather_pages`` joins a layer's pages, ``scatter_pages`` splits new tokens.

Bytes are moved as they are. Operands of both: ``kv`` [2, capacity, B, KVH, D], and pages ``page0``, ``page1``, ... [2,
P, B, KVH, D] of consecutive tokens, the first of which begins at token ``first``. Moved are ``tokens`` tokens from
``position`` on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import Access, Cost, Kernel, Operands, Params
from xinfer_lab.device.records import Span, View
from xinfer_lab.residency.operands import operand, want

__all__ = ["GATHER_PAGES", "MOST_PAGES", "SCATTER_PAGES", "move_params"]

MOST_PAGES = 32
"""Pages of one dispatch at most."""

_FLOATS = ("float32", "float16", "bfloat16")
_PARAMS = {"first", "position", "tokens"}


def move_params(first: int, position: int, tokens: int) -> dict[str, int]:
    """The parameters of either kernel."""
    return {"first": first, "position": position, "tokens": tokens}


def _pieces(operands: Mapping[str, object], size: int, params: Params) -> Iterator[tuple[str, int, int, int]]:
    """(page, token in the page, token in the cache, tokens) of each piece that is moved; ``size`` tokens a page."""
    first, position, tokens = (int(params[name] or 0) for name in ("first", "position", "tokens"))
    for number in range(len(operands) - 1):
        start = first + number * size
        low, high = max(position, start), min(position + tokens, start + size)
        yield f"page{number}", low - start, low, high - low


def _check(kernel: str) -> Callable[[Operands, Params], None]:
    def check(operands: Operands, params: Params) -> None:
        pages = len(operands) - 1
        wanted = {"kv", *(f"page{number}" for number in range(pages))}
        want(operands.keys() == wanted and 1 <= pages <= MOST_PAGES, kernel, f"operands are {sorted(operands)}")
        want(params.keys() == _PARAMS, kernel, f"parameters must be {sorted(_PARAMS)}, not {sorted(params)}")
        for name in _PARAMS:
            value = params[name]
            want(type(value) is int and value >= 0, kernel, f"{name} must be a whole number, not {value!r}")
        kv = operand(kernel, operands, "kv", 5, *_FLOATS)
        size = operand(kernel, operands, "page0", 5, kv.dtype).shape[1]
        want(kv.shape[0] == 2, kernel, f"'kv' holds keys and values, but has the shape {kv.shape}")
        for number in range(pages):
            page = operand(kernel, operands, f"page{number}", 5, kv.dtype)
            want(
                page.shape == (2, size, *kv.shape[2:]), kernel,
                f"'page{number}' must have the shape {(2, size, *kv.shape[2:])}, but has {page.shape}",
            )  # fmt: skip
        for name, _, token, count in _pieces(operands, size, params):
            want(count > 0, kernel, f"{name!r} holds none of the tokens that are moved")
            want(token + count <= kv.shape[1], kernel, f"'kv' has {kv.shape[1]} tokens, not {token + count}")
        moved = sum(count for *_, count in _pieces(operands, size, params))
        want(moved == params["tokens"], kernel, f"{pages} pages hold {moved} of the {params['tokens']} tokens")

    return check


def _spans(operands: Operands, params: Params) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The bytes that are moved, in pages and in the cache."""
    kv, size = operands["kv"], operands["page0"].shape[1]
    pages, cache = [], []
    for name, there, here, count in _pieces(operands, size, params):
        pages += _tokens(operands[name], there, count)
        cache += _tokens(kv, here, count)
    return tuple(pages), tuple(cache)


def _tokens(view: View, first: int, count: int) -> list[Span]:
    half = view.nbytes // 2
    token = half // view.shape[1]
    return [Span(view.buffer, view.offset + which * half + first * token, count * token) for which in (0, 1)]


def _cost(operands: Operands, params: Params) -> Cost:
    kv = operands["kv"]
    moved = int(params["tokens"] or 0) * (kv.nbytes // kv.shape[1])
    return Cost(0.0, 2.0 * moved, len(operands) - 1)


def _run(tensors: Mapping[str, torch.Tensor], params: Params, *, gather: bool) -> None:
    kv, size = tensors["kv"], tensors["page0"].shape[1]
    for name, there, here, count in _pieces(tensors, size, params):
        page, cache = tensors[name][:, there : there + count], kv[:, here : here + count]
        if gather:
            cache.copy_(page)
        else:
            page.copy_(cache)


def _gather_access(operands: Operands, params: Params) -> Access:
    pages, cache = _spans(operands, params)
    return Access(pages, cache)


def _scatter_access(operands: Operands, params: Params) -> Access:
    pages, cache = _spans(operands, params)
    return Access(cache, pages)


GATHER_PAGES = KERNELS.register(
    Kernel(
        name="gather_pages",
        run=lambda tensors, params: _run(tensors, params, gather=True),
        access=_gather_access,
        cost=_cost,
        workspace=lambda operands, params: 0,
        check=_check("gather_pages"),
    )
)
SCATTER_PAGES = KERNELS.register(
    Kernel(
        name="scatter_pages",
        run=lambda tensors, params: _run(tensors, params, gather=False),
        access=_scatter_access,
        cost=_cost,
        workspace=lambda operands, params: 0,
        check=_check("scatter_pages"),
    )
)
