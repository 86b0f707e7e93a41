"""A forward pass computes in the weights' own type, whatever a program around it switched on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

__all__ = ["own_precision"]


@contextmanager
def own_precision() -> Iterator[None]:
    """Within it, or in a function decorated with it, autocast is off: mixed precision would give other results."""
    with ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield
