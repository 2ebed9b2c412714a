"""Fuse: gradients of several layers in one collective, so that starting up is paid once."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.task.passes.gradients import Gradients
from ropewalk.task.passes.pack import pack


def fuse(gradients: Gradients, groups: Sequence[Sequence[int]]) -> Gradients:
    """Sum the tensors of each group together, groups in the order in which they are given.

    Tensors of a group that different communicators sum (of two pipeline stages, say) are fused for each of them.
    """
    return pack(gradients, [[(tensor, 1.0) for tensor in group] for group in groups])
