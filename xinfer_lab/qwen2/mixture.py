"""The second half of a layer with experts: route, shared_expert, expert, combine.

Each writes into tensors that the caller provides, as the functions of `xinfer_lab.qwen2.layers` do. None of them needs
to know on the host what a tensor holds: on CUDA they enqueue work and return. Which experts were chosen only decides
which calls of `expert` there are; the caller reads the choice from what `route` wrote.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch.nn.functional import linear, silu

from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layers import rms_norm
from xinfer_lab.qwen2.layout import aligned_elements

__all__ = [
    "EXPERT_TENSORS",
    "ExpertRows",
    "combine",
    "expert",
    "experts_of_row",
    "experts_together",
    "route",
    "runs_of",
    "shared_expert",
]

ExpertRows = tuple[int, int, int]
"""An expert's number, and the places [start, end) of its rows in what `route` wrote."""


def route(
    hidden: torch.Tensor,
    norm: torch.Tensor,
    gate: torch.Tensor,
    normed: torch.Tensor,
    experts: torch.Tensor,
    rows: torch.Tensor,
    scores: torch.Tensor,
    *,
    eps: float,
    renormalise: bool,
) -> None:
    """Chooses experts for each of the R = B T rows of hidden[B, T, H]: the K largest of softmax(normed gate^T) in fp32.

    Writes normed[R, H], the RMSNorm of hidden with norm[H], and the R K choices sorted by expert, then by row:
    experts[R K] (int64, which expert), rows[R K] (int64, which row chose it), scores[R K] (hidden's dtype, its weight).
    K is what experts has room for; gate[E, H] scores the experts. With `renormalise` a row's weights are divided by
    their sum, still in fp32.
    """
    per_row = experts.shape[0] // normed.shape[0]
    fused = fused_for(hidden)
    made = (fused.rms_norm if fused is not None else rms_norm)(hidden, norm, eps).view(normed.shape)
    normed.copy_(made)
    probabilities = linear(made, gate).softmax(-1, dtype=torch.float32)
    del made
    weights, chosen = probabilities.topk(per_row, dim=-1)
    if renormalise:
        weights = weights / weights.sum(-1, keepdim=True)
    found, order = chosen.view(-1).sort(stable=True)
    experts.copy_(found)
    torch.div(order, per_row, rounding_mode="floor", out=rows)
    scores.copy_(weights.to(scores.dtype).view(-1)[order])


def runs_of(experts: torch.Tensor) -> Iterator[ExpertRows]:
    """(expert, start, end) for each expert that occurs in experts[R K] as `route` sorted them, in order."""
    start = 0
    for number, count in sorted(Counter(experts.tolist()).items()):
        yield number, start, start + count
        start += count


def shared_expert(normed: torch.Tensor, weights: Mapping[str, torch.Tensor], mixed: torch.Tensor) -> None:
    """mixed[R, H] = sigmoid(normed g^T) mlp(normed), for normed[R, H]: every token gets this, whatever it chose.

    `weights` has the shared expert's four tensors by their names relative to the layer (`layout.tensor_shapes`).
    """
    share = linear(normed, weights["mlp.shared_expert_gate.weight"]).sigmoid_()
    torch.mul(share, _mlp(normed, weights, "mlp.shared_expert."), out=mixed)


def expert(
    normed: torch.Tensor,
    rows: torch.Tensor,
    scores: torch.Tensor,
    weights: Mapping[str, torch.Tensor],
    mixed: torch.Tensor,
) -> None:
    """mixed[rows] += scores mlp(normed[rows]), for the rows[N] that chose this expert, each of them once.

    `weights` has the expert's three tensors by their names relative to it (`layout.expert_layout`). The order in which
    experts are added matters to the last bit: callers take them by their numbers.
    """
    if normed.shape[0] == 1 and (fused := fused_for(normed)) is not None:
        fused.experts_at(normed, scores, (weights,), mixed)
        return
    made = _mlp(normed.index_select(0, rows), weights, "")
    mixed.index_add_(0, rows, made.mul_(scores.unsqueeze(1)))


def experts_together(
    normed: torch.Tensor, scores: torch.Tensor, experts: Sequence[Mapping[str, torch.Tensor]], mixed: torch.Tensor
) -> None:
    """mixed[1, H] += scores mlp(normed[1, H]), for one row and the K experts that it chose, with scores[K].

    The bytes are those of `expert` called for each, in this order. All experts are laid out alike.
    """
    if (fused := fused_for(normed)) is not None:
        fused.experts_at(normed, scores, experts, mixed)
        return
    row = torch.zeros(1, dtype=torch.int64, device=normed.device)
    for place, weights in enumerate(experts):
        expert(normed, row, scores[place : place + 1], weights, mixed)


def experts_of_row(
    normed: torch.Tensor, chosen: torch.Tensor, scores: torch.Tensor, weights: torch.Tensor, wide: int,
    mixed: torch.Tensor,
) -> None:  # fmt: skip
    """mixed[1, H] += scores mlp(normed[1, H]), for one row and all experts that it chose: chosen[K], in growing order.

    weights[E, N] are all experts, each laid out as `layout.expert_layout` has it, of intermediate size `wide`. The
    bytes are those of `expert` called for each. On a GPU with Triton the host need not know which experts were chosen.
    """
    size = normed.shape[1]
    up_at, down_at = (count * aligned_elements(wide * size, normed.dtype.itemsize) for count in (1, 2))
    if (fused := fused_for(normed)) is not None:
        fused.experts_row(normed, chosen, scores, weights, wide, up_at, down_at, mixed)
        return
    experts = [
        {
            "gate_proj.weight": weights[number, : wide * size].view(wide, size),
            "up_proj.weight": weights[number, up_at : up_at + wide * size].view(wide, size),
            "down_proj.weight": weights[number, down_at : down_at + wide * size].view(size, wide),
        }
        for number in chosen.tolist()
    ]
    experts_together(normed, scores, experts, mixed)


def combine(mixed: torch.Tensor, hidden: torch.Tensor) -> None:
    """hidden[B, T, H] += mixed[R, H]: the residual connection around the experts."""
    hidden.add_(mixed.view(hidden.shape))


EXPERT_TENSORS = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
"""An expert's tensors by their names relative to it, in the order of their bytes."""


def _mlp(rows: torch.Tensor, weights: Mapping[str, torch.Tensor], prefix: str) -> torch.Tensor:
    if (fused := fused_for(rows)) is not None:
        made: torch.Tensor = fused.mlp_rows(rows, *(weights[f"{prefix}{name}"] for name in EXPERT_TENSORS))
        return made
    gate = silu(linear(rows, weights[f"{prefix}gate_proj.weight"]), inplace=True)
    gate.mul_(linear(rows, weights[f"{prefix}up_proj.weight"]))
    return linear(gate, weights[f"{prefix}down_proj.weight"])
