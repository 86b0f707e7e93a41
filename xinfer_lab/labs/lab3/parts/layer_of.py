"""Which layer a step computes."""

__all__ = ["layer_of"]


def layer_of(step, layers):  # type: ignore[no-untyped-def]
    """See Lab 3."""
    return step % layers
