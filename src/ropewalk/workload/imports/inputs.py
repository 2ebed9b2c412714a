"""Example inputs of a PyTorch module: how they are given, which dimension is the batch, how they are resized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropewalk.errors import WorkloadError

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a call."""


def arguments_of(inputs: Any, subject: str) -> Arguments:
    """Positional and keyword arguments, however they were given."""
    import torch

    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        pair = len(inputs) == 2 and isinstance(inputs[0], tuple | list) and isinstance(inputs[1], Mapping)
        return (tuple(inputs[0]), dict(inputs[1])) if pair else (tuple(inputs), {})
    raise WorkloadError(
        f"{subject}: example inputs are a {type(inputs).__name__}: give a tensor, a tuple of arguments, a mapping of "
        f"keyword arguments, or both as (tuple, mapping)"
    )


def batch_of(inputs: Arguments, batch_dim: int, subject: str) -> int:
    """Samples in the micro-batch: the size of the first tensor in that dimension."""
    found = [tensor for tensor in _tensors(inputs) if -tensor.dim() <= batch_dim < tensor.dim()]
    if not found:
        raise WorkloadError(
            f"{subject}: no example input has a dimension {batch_dim}for the micro-batch: give tensors with a "
            f"batch, or set batch_dim"
        )
    return int(found[0].shape[batch_dim])


def sequence_of(inputs: Arguments) -> int:
    """Tokens in a sample, where the first input is a matrix of token numbers; otherwise 0."""
    import torch

    first = _tensors(inputs)[0]
    return int(first.shape[1]) if first.dim() == 2 and first.dtype in (torch.int64, torch.int32) else 0


def resized(inputs: Arguments, batch: int, to: int, batch_dim: int) -> Arguments:
    """The same inputs for another micro-batch; only their shapes are used."""
    import torch

    def other(tensor: Any) -> Any:
        if not -tensor.dim() <= batch_dim < tensor.dim() or tensor.shape[batch_dim] != batch:
            return tensor
        shape = list(tensor.shape)
        shape[batch_dim] = to
        return torch.empty(shape, dtype=tensor.dtype, device="meta")

    return _mapped(other, inputs)


def beside(module: Any, inputs: Arguments) -> Arguments:
    """Inputs on the device of the module's parameters: tracing looks at devices, though nothing runs on them."""
    import torch

    device = device_of(module)
    return _mapped(
        lambda tensor: (
            tensor if tensor.device == device else torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
        ),
        inputs,
    )


def device_of(module: Any) -> Any:
    """Where the module's parameters are; tensors that its code makes without saying where belong there too."""
    import torch

    return next((tensor.device for tensor in [*module.parameters(), *module.buffers()]), torch.device("meta"))


def _tensors(inputs: Arguments) -> list[Any]:
    import torch
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def _mapped(change: Any, inputs: Arguments) -> Arguments:
    import torch
    from torch.utils import _pytree

    changed: Arguments = _pytree.tree_map(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf, inputs)
    return changed
