"""The plainest run of a model: all weights resident, plain tensors, the functions of the forward pass in order.

It uses no device, no queue and no residency. The tests compare everything else with it.
"""

from collections.abc import Mapping

import torch

from xinfer_lab.qwen2 import mixture
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layers import attention, decoder_layer, embed, layer_spec, lm_head
from xinfer_lab.qwen2.layout import (
    GroupLayout,
    expert_layout,
    expert_tensor_name,
    layer_layout,
    resident_tensors,
    tensor_name,
)
from xinfer_lab.qwen2.precision import own_precision

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
        self._resident = _load(checkpoint, resident_tensors(config), "{}", device)
        self._layers = [
            {
                name: tensor
                for group in layer_layout(config, layer).groups
                for name, tensor in _load(checkpoint, group, tensor_name(layer, "{}"), device).items()
            }
            for layer in range(config.num_hidden_layers)
        ]
        self._experts = {
            layer: [
                _load(checkpoint, expert_layout(config), expert_tensor_name(layer, number, "{}"), device)
                for number in range(config.experts.num_experts)
            ]
            for layer in range(config.num_hidden_layers)
            if config.experts is not None and config.has_experts(layer)
        }
        shape = (config.num_hidden_layers, 2, capacity, batch, config.num_key_value_heads, config.head_dim)
        self._cache = torch.zeros(shape, dtype=config.dtype, device=device)

    @torch.inference_mode()
    @own_precision()
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
            if layer in self._experts:
                attention(hidden, weights, keys, values, self.position, layer_spec(config, layer))
                self._mix(hidden, weights, self._experts[layer])
            else:
                decoder_layer(hidden, weights, keys, values, self.position, layer_spec(config, layer))
        head = table if config.tie_word_embeddings else self._resident["lm_head.weight"]
        lm_head(hidden, self._resident["model.norm.weight"], head, logits, config.rms_norm_eps)
        self.position += count
        return logits

    def _mix(
        self, hidden: torch.Tensor, weights: Mapping[str, torch.Tensor], experts: list[dict[str, torch.Tensor]]
    ) -> None:
        config = self.config.experts
        assert config is not None
        normed = torch.empty_like(hidden).flatten(0, 1)
        mixed = torch.empty_like(normed)
        chosen = torch.empty(normed.shape[0] * config.num_experts_per_tok, dtype=torch.int64, device=hidden.device)
        rows, scores = torch.empty_like(chosen), torch.empty_like(chosen, dtype=hidden.dtype)
        mixture.route(
            hidden, weights["post_attention_layernorm.weight"], weights["mlp.gate.weight"], normed, chosen, rows,
            scores, eps=self.config.rms_norm_eps, renormalise=config.norm_topk_prob,
        )  # fmt: skip
        mixture.shared_expert(normed, weights, mixed)
        for number, start, end in mixture.runs_of(chosen):
            mixture.expert(normed, rows[start:end], scores[start:end], experts[number], mixed)
        mixture.combine(mixed, hidden)

    def reset(self) -> None:
        """Forgets every token."""
        self.position = 0


def _load(
    checkpoint: Checkpoint, group: GroupLayout, full_name: str, device: torch.device | str
) -> dict[str, torch.Tensor]:
    """The tensors of `group` by their names in it; `full_name`, with "{}" for that, is the checkpoint's name."""
    # PyTorch aligns allocations to 64 bytes or more, so the start of the group is moved up to the next 256.
    memory = torch.zeros(group.nbytes + 256, dtype=torch.uint8, device=device)
    memory = memory[-memory.data_ptr() % 256 :][: group.nbytes]
    tensors = {}
    for place in group.tensors:
        target = memory[place.offset : place.offset + place.nbytes]
        target.copy_(checkpoint.bytes(full_name.format(place.name)))
        tensors[place.name] = target.view(checkpoint.config.dtype).view(place.shape)
    return tensors
