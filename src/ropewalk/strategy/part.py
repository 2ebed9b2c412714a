"""A part of a model: consecutive layers, and the ranks that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Manner(Enum):
    """How servers share a layer."""

    SAMPLE = "sample"
    """Each has all weights and an equal, contiguous part of the batch; weights are summed over the servers."""
    PINNED = "pinned"
    """One server has the layer and the whole batch, as embedding tables are kept."""
    COLUMNS = "columns"
    """Each has an equal part of the outputs, with their weights, and the whole batch (an extension of the published
    search space)."""
    TENSOR = "tensor"
    """As Megatron-LM splits attention, feed-forward and expert layers: each has a part of the columns of the first
    product and of the rows of the second, and the whole batch; they sum their results, so that all have the whole
    output (an extension)."""
    EXPERT = "expert"
    """Each has an equal, contiguous part of the batch and an equal part of the experts, to which samples travel and
    from which they return; other weights are summed over the servers (an extension)."""

    @property
    def parts_samples(self) -> bool:
        """Do the servers take different samples? Otherwise each has all of them."""
        return self in (Manner.SAMPLE, Manner.EXPERT)


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
    manner: Manner = Manner.SAMPLE
    """How workers that are servers share a single layer; GPUs split samples, and tensor ranks the rest."""

    @property
    def together(self) -> int:
        """Workers that have the same samples.

        >>> Part(0, 0, (0, 1, 2), manner=Manner.TENSOR).together
        3
        """
        return self.tensor if self.manner.parts_samples else len(self.workers)

    @property
    def replicas(self) -> int:
        """Into how many parts a micro-batch is split here."""
        return len(self.workers) // self.together

    @property
    def experts(self) -> int:
        """Workers over which experts are spread."""
        return len(self.workers) if self.manner is Manner.EXPERT else 1

    @property
    def layers(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def sharers(self) -> tuple[int, ...]:
        """The first rank of every replica: those that reduce the same gradients."""
        return self.workers[:: self.together]
