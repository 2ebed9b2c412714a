"""A small language model of one's own, as the script of `ropewalk export --to pytorch` wants it.

Its layers are those of `llama:layers=6,hidden=64,heads=4,vocabulary=256`: an embedding, six blocks, a head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

WORDS, WIDTH, HEADS, BLOCKS, TOKENS = 256, 64, 4, 6, 32


class Block(nn.Module):
    """Attention and a feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.mixed(self.before(x)).chunk(3, -1)]
        met = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(met.transpose(1, 2).flatten(-2))
        return x + self.down(nn.functional.gelu(self.up(self.between(x))))


def build() -> nn.Module:
    """The layers in a row, so that a pipeline can be cut anywhere between them."""
    head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *(Block() for _ in range(BLOCKS)), head)


def batch(first: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples by number, the same whoever asks for them: words that count up, each sample in its own steps."""
    number = torch.arange(first, first + samples)[:, None]
    words = (7 * number + (1 + number % 5) * torch.arange(TOKENS + 1)) % WORDS
    return words[:, :-1], words[:, 1:]


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of the next word."""
    return nn.functional.cross_entropy(outputs.flatten(0, 1).float(), targets.flatten())


def tensor_plan(module: nn.Module) -> dict[str, Any]:
    """The feed-forward layers of the blocks, split as Megatron-LM splits them: by columns, then by rows."""
    names = [name for name, found in module.named_modules() if isinstance(found, Block)]
    return {f"{name}.up": ColwiseParallel() for name in names} | {f"{name}.down": RowwiseParallel() for name in names}
