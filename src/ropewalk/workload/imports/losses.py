"""Losses for `from_module`, of what a module returns alone: targets are made up, for only their shape matters."""

from __future__ import annotations

from typing import Any


def cross_entropy(output: Any) -> Any:
    """The cross entropy of logits whose last dimension are the classes; takes outputs with a field `logits` too."""
    import torch

    logits = _tensor(output, "logits")
    rows = logits.reshape(-1, logits.shape[-1])
    return torch.nn.functional.cross_entropy(rows, rows.new_zeros(rows.shape[0], dtype=torch.long))


def mean_square(output: Any) -> Any:
    """The mean square of the difference to a target of the same shape."""
    import torch

    made = _tensor(output, "last_hidden_state")
    return torch.nn.functional.mse_loss(made, torch.zeros_like(made))


def _tensor(output: Any, field: str) -> Any:
    if hasattr(output, field):
        return getattr(output, field)
    return output[0] if isinstance(output, tuple | list) else output
