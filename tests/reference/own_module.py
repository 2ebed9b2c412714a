"""A module of somebody's own, as the exported training script wants it: build, batch, loss and tensor_plan."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel

WIDTH, LAYERS = 16, 8


def build() -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)))


def batch(first: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same samples whoever asks for them."""
    rows = [
        torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(number))
        for number in range(first, first + samples)
    ]
    both = torch.stack(rows)
    return both[:, 0], both[:, 1]


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> Any:
    return nn.functional.mse_loss(outputs, targets)


def tensor_plan(module: nn.Module) -> dict[str, Any]:
    """Every product over all tensor ranks, its outputs gathered."""
    names = (name for name, found in module.named_modules() if isinstance(found, nn.Linear))
    return {name: ColwiseParallel(output_layouts=Replicate()) for name in names}
