"""Chooses the next token from logits."""

import torch

__all__ = ["greedy", "sample"]


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """The most likely token of each row: int64 [B] from logits[B, V]; the lowest id among equals.

    Waits for the logits. Raises ValueError when one is NaN.
    """
    _check(logits)
    return logits.argmax(dim=-1)


def sample(
    logits: torch.Tensor,
    *,
    temperature: float,
    generator: torch.Generator,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """A token for each row, drawn from softmax(logits / temperature): int64 [B] from logits[B, V].

    `top_k` keeps the k most likely tokens; `top_p` (Holtzman et al., 2020) then keeps the fewest whose probabilities
    sum to at least p, always one. Among equal logits the lower ids are kept. All randomness comes from `generator`,
    which must live on the logits' device; the same state gives the same tokens. A temperature so low that quotients
    overflow gives what `greedy` gives, or one of several equal ones. Raises ValueError for an argument out of range, a
    NaN, or a largest logit that is infinite.
    """
    if not 0 < temperature < float("inf"):
        raise ValueError(
            f"temperature must be greater than 0, but is {temperature}; for the most likely token use greedy"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, but is {top_k}; leave it out to keep every token")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be greater than 0 and at most 1, but is {top_p}")
    if generator.device.type != logits.device.type:
        raise ValueError(
            f"the generator must be on {logits.device}, where the logits are, but is on {generator.device}"
        )
    _check(logits)
    ranked, order = logits.float().sort(dim=-1, descending=True, stable=True)
    if not ranked[:, 0].isfinite().all():
        raise ValueError("the largest of the logits is infinite, so that no token can be drawn")
    # What is subtracted changes no probability; only differences grow with a low temperature, and -inf is a fine one.
    ranked = ((ranked.double() - ranked[:, :1]) / temperature).float()
    if top_k is not None:
        ranked[:, min(top_k, ranked.shape[1]) :] = float("-inf")
    probabilities = ranked.softmax(dim=-1)
    if top_p is not None:
        before = probabilities.cumsum(dim=-1) - probabilities
        beyond = before >= top_p
        beyond[:, 0] = False  # even where top_p is too small a number for float32
        probabilities = probabilities.masked_fill(beyond, 0.0)
    drawn = torch.multinomial(probabilities, 1, generator=generator)
    return order.gather(-1, drawn).squeeze(-1)


def _check(logits: torch.Tensor) -> None:
    if logits.dim() != 2 or logits.shape[1] == 0:
        raise ValueError(f"logits must have the shape [batch, vocabulary], but have {list(logits.shape)}")
    if logits.isnan().any():
        raise ValueError("the logits hold NaN, so that no token can be chosen")
