"""What a call costs the host: the time until PyTorch has handed an operation, and its gradient, to the GPU.

Small models are not limited by their kernels but by the thread that launches them. Every operation is run in a chain,
each link with parameters of its own, and the clock on the wall stops when the last launch is out, not when it is done.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
from torch import nn

CALLS = 40
REPEATS = 7
WARM_UP = 3

TENSORS = 200
"""Tensors of a middling model, over which the fixed cost of an update is spread."""

OPTIMISERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=1e-3),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=1e-3, momentum=0.9),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=1e-3),
    "adamw_fused": lambda weights: torch.optim.AdamW(weights, lr=1e-3, fused=True),
    "adamw_loop": lambda weights: torch.optim.AdamW(weights, lr=1e-3, foreach=False),
}
"""Optimisers as PyTorch runs them, by the names of their kernels."""

Link = Callable[[torch.Tensor], torch.Tensor]


def host_seconds(device: str, dtype: torch.dtype) -> dict[str, tuple[float, float]]:
    """Seconds of host time for one operation in a chain: forward with gradients recorded, and backward."""
    found = {}
    for name, (make, shape) in _OPERATIONS.items():
        links = [make() for _ in range(CALLS)]
        links = [link.to(device, dtype) if isinstance(link, nn.Module) else link for link in links]
        found[name] = _timed(links, torch.randn(*shape, device=device, dtype=dtype))
    return found | {name: (_update(name, device, dtype), 0.0) for name in OPTIMISERS}


def _update(name: str, device: str, dtype: torch.dtype) -> float:
    """Seconds of host time for each tensor that an optimiser updates."""
    weights = [nn.Parameter(torch.randn(64, device=device, dtype=dtype)) for _ in range(TENSORS)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    update = OPTIMISERS[name](weights)
    times = []
    for _ in range(REPEATS + WARM_UP):
        _wait(weights[0])
        clock = time.perf_counter()
        update.step()
        times.append((time.perf_counter() - clock) / TENSORS)
    return statistics.median(times[WARM_UP:])


def _timed(links: list[Link], start: torch.Tensor) -> tuple[float, float]:
    start.requires_grad_()
    forwards, backwards = [], []
    for _ in range(REPEATS + WARM_UP):
        for link in links:
            if isinstance(link, nn.Module):
                link.zero_grad(set_to_none=True)
        _wait(start)
        clock = time.perf_counter()
        x: Any = start
        for link in links:
            x = link(x)
        forwards.append((time.perf_counter() - clock) / CALLS)
        grad = torch.ones_like(x)
        _wait(start)
        clock = time.perf_counter()
        x.backward(grad)
        backwards.append((time.perf_counter() - clock) / CALLS)
    return statistics.median(forwards[WARM_UP:]), statistics.median(backwards[WARM_UP:])


def _wait(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


class _Lookup(nn.Module):
    """An embedding in a chain: its rows are added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(128, 256)
        self.register_buffer("index", torch.zeros(4, 64, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(self.index)


class _Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(128, 256, mode="sum")
        self.register_buffer("index", torch.zeros(64, 2, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(self.index)


def _widen(x: torch.Tensor) -> torch.Tensor:
    return x.double().to(x.dtype)


def _plain(call: Link) -> Callable[[], Link]:
    return lambda: call


ROWS, IMAGES, HEADS = (4, 64, 256), (4, 64, 28, 28), (4, 4, 64, 64)

_OPERATIONS: dict[str, tuple[Callable[[], Link], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(256, 256), ROWS),
    "linear_without_bias": (lambda: nn.Linear(256, 256, bias=False), ROWS),
    "convolution": (lambda: nn.Conv2d(64, 64, 3, padding=1, bias=False), IMAGES),
    "convolution_with_bias": (lambda: nn.Conv2d(64, 64, 3, padding=1), IMAGES),
    "pointwise_convolution": (lambda: nn.Conv2d(64, 64, 1, bias=False), IMAGES),
    "batch_norm": (lambda: nn.BatchNorm2d(64), IMAGES),
    "layer_norm": (lambda: nn.LayerNorm(256), ROWS),
    "rms_norm": (lambda: nn.RMSNorm(256), ROWS),
    "dropout": (lambda: nn.Dropout(0.1), ROWS),
    "relu": (nn.ReLU, ROWS),
    "gelu": (nn.GELU, ROWS),
    "silu": (nn.SiLU, ROWS),
    "add": (_plain(lambda x: x + x), ROWS),
    "scale": (_plain(lambda x: x * 0.5), ROWS),
    "multiply": (_plain(lambda x: x * x), ROWS),
    "power": (_plain(lambda x: x.pow(2)), ROWS),
    "cast": (_plain(_widen), ROWS),
    "view": (_plain(lambda x: x.view(256, 256).view(4, 64, 256)), ROWS),
    "transpose": (_plain(lambda x: x.transpose(0, 1).transpose(0, 1)), ROWS),
    "copy": (_plain(lambda x: x.transpose(1, 2).contiguous().view(4, 64, 256)), ROWS),
    "cat": (_plain(lambda x: torch.cat((x[..., :128], x[..., 128:]), -1)), ROWS),
    "mean": (_plain(lambda x: x - x.mean(-1, keepdim=True)), ROWS),
    "softmax": (_plain(lambda x: torch.softmax(x, -1)), ROWS),
    "max_pool": (lambda: nn.MaxPool2d(3, 1, 1), IMAGES),
    "average_pool": (lambda: nn.AvgPool2d(3, 1, 1), IMAGES),
    "attention": (_plain(lambda x: fn.scaled_dot_product_attention(x, x, x)), HEADS),
    "embedding": (_Lookup, ROWS),
    "embedding_bag": (_Bag, (64, 256)),
    "batched_matmul": (_plain(lambda x: x @ x), HEADS),
    "module": (nn.Identity, ROWS),
}
"""What is run, and the shape of what goes through it. Two casts, views, transposes count as one call of their name."""
