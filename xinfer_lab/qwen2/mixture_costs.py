"""What the functions of `mixture` cost, from shapes alone; conventions as in `xinfer_lab.qwen2.costs`.

How many rows take an expert is known only after routing: `expert_work` is for one call. Choices count as 8 bytes for
each of their two numbers.
"""

import torch

from xinfer_lab.qwen2.costs import SLACK, Work, norm_workspace

__all__ = ["combine_work", "expert_work", "experts_of_row_work", "route_work", "shared_expert_work"]

_SORT = 8
"""int64 copies of the choices that sorting takes at most at a time: keys, values, their results, the two halves of what
a radix sort moves between, and what was chosen."""


def route_work(*, rows: int, hidden_size: int, experts: int, per_row: int, dtype: torch.dtype) -> Work:
    """Norm, scores of all experts for `rows` rows, and the choice of `per_row` of them for each."""
    size, choices = dtype.itemsize, rows * per_row
    scores = rows * experts * (size + 4) + rows * experts * (4 + 8)  # as they are, in fp32, and what topk takes
    return Work(
        flops=2 * rows * hidden_size * experts,
        bytes_read=(rows * hidden_size + hidden_size + experts * hidden_size) * size,
        bytes_written=rows * hidden_size * size + choices * (16 + size),
        workspace=SLACK
        + max(
            norm_workspace(rows * hidden_size, dtype) + rows * hidden_size * size,
            rows * hidden_size * size + scores + choices * (8 * _SORT + 4 + 4 + 2 * size),
        ),
    )


def shared_expert_work(*, rows: int, hidden_size: int, intermediate_size: int, dtype: torch.dtype) -> Work:
    """The shared expert and its gate for `rows` rows."""
    size, weights = dtype.itemsize, 3 * hidden_size * intermediate_size + hidden_size
    return Work(
        flops=2 * rows * weights,
        bytes_read=(weights + rows * hidden_size) * size,
        bytes_written=rows * hidden_size * size,
        workspace=SLACK + _mlp_workspace(rows, hidden_size, intermediate_size, size) + rows * size,
    )


def expert_work(*, rows: int, hidden_size: int, intermediate_size: int, dtype: torch.dtype) -> Work:
    """One expert for the `rows` rows that chose it: they are read, and added to."""
    size, weights = dtype.itemsize, 3 * hidden_size * intermediate_size
    return Work(
        flops=2 * rows * weights,
        bytes_read=(weights + 2 * rows * hidden_size + rows) * size + rows * 8,
        bytes_written=rows * hidden_size * size,
        workspace=SLACK + rows * hidden_size * size + _mlp_workspace(rows, hidden_size, intermediate_size, size),
    )


def experts_of_row_work(*, chosen: int, hidden_size: int, intermediate_size: int, dtype: torch.dtype) -> Work:
    """All ``chosen`` experts of one row: only their weights are read."""
    one = expert_work(rows=1, hidden_size=hidden_size, intermediate_size=intermediate_size, dtype=dtype)
    return Work(
        flops=chosen * one.flops,
        bytes_read=chosen * one.bytes_read,
        bytes_written=one.bytes_written,
        workspace=one.workspace + chosen * intermediate_size * dtype.itemsize,
    )


def combine_work(*, rows: int, hidden_size: int, dtype: torch.dtype) -> Work:
    """A sum of two tensors."""
    size = rows * hidden_size * dtype.itemsize
    return Work(0, 2 * size, size, SLACK)


def _mlp_workspace(rows: int, hidden_size: int, intermediate_size: int, size: int) -> int:
    """Gate and up side by side, then gate and the result."""
    return (intermediate_size + max(intermediate_size, hidden_size)) * rows * size
