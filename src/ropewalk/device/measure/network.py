"""How much longer calls take in a network than alone: two small networks against the sum of their calls.

A call that is repeated finds its code and data in the caches of the host; in a network it does not. The factor between
the two is measured on a residual network of images and on a stack of transformer blocks, both too small to keep a GPU
busy, and applies to the calls of every model.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from typing import ClassVar

import torch
import torch.nn.functional as fn
from torch import nn

BLOCKS = 12
REPEATS = 9
WARM_UP = 4

Calls = dict[str, tuple[float, float]]


class ImageBlock(nn.Module):
    """Two convolutions around a shortcut."""

    calls: ClassVar = Counter(convolution=2, batch_norm=2, relu=2, add=1)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(64), nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm(self.first(x)))
        result: torch.Tensor = self.relu(self.last(self.second(y)) + x)
        return result


class TextBlock(nn.Module):
    """Attention and a perceptron, each behind a norm and beside a shortcut."""

    calls: ClassVar = Counter(
        linear=4, layer_norm=2, attention=1, gelu=1, dropout=2, add=2, view=1, transpose=2, copy=1
    )

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.last = nn.LayerNorm(256), nn.LayerNorm(256)
        self.heads, self.joined = nn.Linear(256, 768), nn.Linear(256, 256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.heads(self.norm(x)).view(batch, length, 3, 4, 64).permute(2, 0, 3, 1, 4)
        met = fn.scaled_dot_product_attention(heads[0], heads[1], heads[2])
        x = x + self.dropout(self.joined(met.transpose(1, 2).reshape(batch, length, width)))
        result: torch.Tensor = x + self.dropout(self.down(fn.gelu(self.up(self.last(x)))))
        return result


def network_factor(device: str, dtype: torch.dtype, calls: Calls) -> tuple[float, float]:
    """Time of whole networks against the sum of their calls, forward and backward; at least 1."""
    image = torch.randn(2, 64, 28, 28, device=device, dtype=dtype)
    text = torch.randn(2, 64, 256, device=device, dtype=dtype)
    pairs = [_factor(ImageBlock, image, calls), _factor(TextBlock, text, calls)]
    forward, backward = (statistics.mean(column) for column in zip(*pairs, strict=True))
    return max(forward, 1.0), max(backward, 1.0)


def _factor(block: type[ImageBlock] | type[TextBlock], x: torch.Tensor, calls: Calls) -> tuple[float, float]:
    network = nn.Sequential(*(block() for _ in range(BLOCKS))).to(x.device, x.dtype)
    forwards, backwards = [], []
    for _ in range(REPEATS + WARM_UP):
        network.zero_grad(set_to_none=True)
        _wait(x)
        clock = time.perf_counter()
        result = network(x)
        forwards.append(time.perf_counter() - clock)
        grad = torch.ones_like(result)
        _wait(x)
        clock = time.perf_counter()
        result.backward(grad)
        backwards.append(time.perf_counter() - clock)
    alone = [BLOCKS * sum(count * calls[name][way] for name, count in block.calls.items()) for way in (0, 1)]
    return statistics.median(forwards[WARM_UP:]) / alone[0], statistics.median(backwards[WARM_UP:]) / alone[1]


def _wait(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()
