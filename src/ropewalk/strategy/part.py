"""A part of a model: consecutive layers, and the ranks that hold them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Layers first to last on workers of their own: replicas split every micro-batch, tensor ranks share its samples.

    >>> Part(0, 11, (0, 1, 2, 3), tensor=2).replicas
    2
    """

    first: int
    last: int
    """Layers first to last, both included."""
    workers: tuple[int, ...]
    """Ranks, replica by replica; the tensor ranks of a replica are neighbours."""
    tensor: int = 1
    """Ranks that work on the same samples together; each holds that part of the weights."""

    @property
    def replicas(self) -> int:
        """Into how many parts a micro-batch is split here."""
        return len(self.workers) // self.tensor

    @property
    def layers(self) -> range:
        return range(self.first, self.last + 1)
