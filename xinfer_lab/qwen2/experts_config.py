"""What a config.json says about experts: how many there are, how many a token takes, and in which layers."""

from dataclasses import dataclass
from typing import Any

from xinfer_lab.qwen2.config_fields import Fields
from xinfer_lab.qwen2.errors import ConfigError

__all__ = ["ExpertsConfig"]


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig:
    """The experts of a Qwen2-MoE model, by the names that config.json has for them. Sizes count elements.

    Each token takes `num_experts_per_tok` of a layer's `num_experts` experts, and the shared expert. With
    `norm_topk_prob` the weights of a token's experts are scaled to sum to 1. Layers in `mlp_only_layers`, and those
    whose number, counted from 1, is no multiple of `decoder_sparse_step`, have a dense MLP instead. Raises ConfigError
    for sizes that cannot be.
    """

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int
    norm_topk_prob: bool = False
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in (
            "num_experts",
            "num_experts_per_tok",
            "moe_intermediate_size",
            "shared_expert_intermediate_size",
            "decoder_sparse_step",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be greater than 0, but is {getattr(self, name)}")
        if self.num_experts_per_tok > self.num_experts:
            raise ConfigError(
                f"num_experts_per_tok must be at most num_experts, but {self.num_experts_per_tok} experts a token are "
                f"more than the {self.num_experts} of a layer"
            )

    def in_layer(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return layer not in self.mlp_only_layers and (layer + 1) % self.decoder_sparse_step == 0

    @classmethod
    def from_fields(cls, fields: Fields) -> "ExpertsConfig":
        """Reads the keys of a config.json of model type qwen2_moe. What was published states each of the sizes."""
        return cls(
            num_experts=fields.integer("num_experts"),
            num_experts_per_tok=fields.integer("num_experts_per_tok"),
            moe_intermediate_size=fields.integer("moe_intermediate_size"),
            shared_expert_intermediate_size=fields.integer("shared_expert_intermediate_size"),
            norm_topk_prob=fields.boolean("norm_topk_prob", False),
            decoder_sparse_step=fields.integer("decoder_sparse_step", 1),
            mlp_only_layers=fields.integers("mlp_only_layers"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The keys of a config.json."""
        return {
            "num_experts": self.num_experts,
            "num_experts_per_tok": self.num_experts_per_tok,
            "moe_intermediate_size": self.moe_intermediate_size,
            "shared_expert_intermediate_size": self.shared_expert_intermediate_size,
            "norm_topk_prob": self.norm_topk_prob,
            "decoder_sparse_step": self.decoder_sparse_step,
            "mlp_only_layers": list(self.mlp_only_layers),
        }
