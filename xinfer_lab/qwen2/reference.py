"""The plainest run of a model: all weights resident, plain tensors, the three functions in order."""

import torch

from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layers import decoder_layer, embed, layer_spec, lm_head
from xinfer_lab.qwen2.layout import GroupLayout, layer_layout, resident_tensors, tensor_name

__all__ = ["ReferenceModel"]


class ReferenceModel:
    """A model with its cache, for up to `capacity` tokens of `batch` sequences of equal length.

    Weights are copied once from the checkpoint, to 256-byte aligned places as `layout` has them; the checkpoint may be
    closed afterwards. `device` is a torch device.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, capacity: int, batch: int = 1, device: torch.device | str = "cpu"
    ) -> None:
        config = self.config = checkpoint.config
        self.position = 0
        """Tokens of each sequence so far."""
        self._resident = _load(checkpoint, resident_tensors(config), None, device)
        self._layers = [
            {
                name: tensor
                for group in layer_layout(config).groups
                for name, tensor in _load(checkpoint, group, layer, device).items()
            }
            for layer in range(config.num_hidden_layers)
        ]
        shape = (config.num_hidden_layers, 2, capacity, batch, config.num_key_value_heads, config.head_dim)
        self._cache = torch.zeros(shape, dtype=config.dtype, device=device)

    @torch.inference_mode()
    def forward(self, tokens: torch.Tensor, positions: int = 1) -> torch.Tensor:
        """Logits [B, positions, V] of the last `positions` of these tokens[B, T] (int64), which follow those before.

        Raises ValueError when the cache is full.
        """
        config, device = self.config, self._cache.device
        batch, count = tokens.shape
        hidden = torch.empty(batch, count, config.hidden_size, dtype=config.dtype, device=device)
        logits = torch.empty(batch, positions, config.vocab_size, dtype=config.dtype, device=device)
        table = self._resident["model.embed_tokens.weight"]
        embed(tokens.to(device), table, hidden)
        for layer, weights in enumerate(self._layers):
            keys, values = self._cache[layer]
            decoder_layer(hidden, weights, keys, values, self.position, layer_spec(config, layer))
        head = table if config.tie_word_embeddings else self._resident["lm_head.weight"]
        lm_head(hidden, self._resident["model.norm.weight"], head, logits, config.rms_norm_eps)
        self.position += count
        return logits

    def reset(self) -> None:
        """Forgets every token."""
        self.position = 0


def _load(
    checkpoint: Checkpoint, group: GroupLayout, layer: int | None, device: torch.device | str
) -> dict[str, torch.Tensor]:
    # PyTorch aligns allocations to 64 bytes or more, so the start of the group is moved up to the next 256.
    memory = torch.zeros(group.nbytes + 256, dtype=torch.uint8, device=device)
    memory = memory[-memory.data_ptr() % 256 :][: group.nbytes]
    tensors = {}
    for place in group.tensors:
        target = memory[place.offset : place.offset + place.nbytes]
        target.copy_(checkpoint.bytes(place.name if layer is None else tensor_name(layer, place.name)))
        tensors[place.name] = target.view(checkpoint.config.dtype).view(place.shape)
    return tensors
