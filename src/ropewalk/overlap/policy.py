"""How gradients are handed to the network: in which pieces, in which order, how many at once.

The network below a scheduler is a first-in-first-out queue: what has been handed to it cannot be called back. So it is
the credit, the bytes handed over and not yet acknowledged, that says how long an urgent piece may have to wait, and not
the size of a piece; and with unlimited credit every order becomes the order in which gradients appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf, isnan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import Findings, StrategyError

FLOAT32_BYTES = 4


class Discipline(IntEnum):
    """Which of the waiting pieces goes next."""

    FIFO = 0
    """The one whose gradient has been complete for longest."""
    PRIORITY = 1
    """The one that the next forward pass needs first: key (place in the model, piece)."""


class CreditWindow(IntEnum):
    """What happens when the next piece is larger than the credit that is left."""

    OVERDRAW = 0
    """It goes while any credit is left, so that credit may fall below zero by less than one piece (ByteScheduler)."""
    SKIP = 1
    """It is passed over and a later piece that fits goes first: an inversion of priorities by design (BytePS)."""


class CreditReturn(IntEnum):
    """When a parameter server gives the credit of a piece back."""

    PUSH = 0
    """When its push is done: the pull uses the other direction of the network."""
    PULL = 1
    """When its pull is done, as in ByteScheduler's released code, whose callback on the push is never registered."""


@dataclass(frozen=True)
class OverlapPolicy:
    """One way to hand gradients over.

    >>> OverlapPolicy(partition_bytes=4e6, credit_bytes=16e6).pieces([10e6, 0]).tolist()
    [3.0, 1.0]
    """

    partition_bytes: float = inf
    """No piece is larger; unlimited: tensors stay whole. Pieces of a tensor share its priority."""
    credit_bytes: float = 0.0
    """Bytes that may be handed over and not yet acknowledged. 0: one piece at a time, whatever its size."""
    discipline: Discipline = Discipline.PRIORITY
    window: CreditWindow = CreditWindow.OVERDRAW
    credit_return: CreditReturn = CreditReturn.PUSH
    barrier: bool = False
    """The next step begins when all tensors are there, instead of each layer when its own are."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "communication order")
        if isnan(self.partition_bytes) or self.partition_bytes <= 0:
            findings.add(f"pieces of {self.partition_bytes:g} bytes are impossible: give a positive partition size")
        if isnan(self.credit_bytes) or self.credit_bytes < 0:
            findings.add(f"a credit of {self.credit_bytes:g} bytes is negative: give 0 (one piece) or more")
        if (
            self.window is CreditWindow.SKIP
            and 0 < self.credit_bytes < self.partition_bytes
            and self.partition_bytes < inf
        ):
            findings.add(
                f"a piece of {self.partition_bytes:g} bytes never fits a credit of {self.credit_bytes:g}: "
                "give a credit of at least one piece"
            )
        findings.raise_if_any()

    def pieces(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """Into how many pieces tensors are cut; one without bytes is still one operation."""
        counts = np.ceil(np.asarray(size_bytes, np.float64) / self.partition_bytes)
        return np.maximum(1.0, counts)


def fifo(*, barrier: bool = True) -> OverlapPolicy:
    """A framework without ordering: whole tensors in order of readiness, all issued at once, then a barrier."""
    return OverlapPolicy(credit_bytes=inf, discipline=Discipline.FIFO, barrier=barrier)


def released_bytescheduler(partition_elements: float = 1e6, credit_elements: float = 4e6) -> OverlapPolicy:
    """ByteScheduler as released: sizes count float32 elements, not bytes, and credit is returned with the pull.

    Its tuner searches partition sizes too, but writes them where nothing reads them: only the credit is tuned.
    """
    return OverlapPolicy(
        partition_elements * FLOAT32_BYTES, credit_elements * FLOAT32_BYTES, credit_return=CreditReturn.PULL
    )


def byteps(partition_bytes: float = 4_096_000, credits: int | None = None) -> OverlapPolicy:
    """The queue of BytePS (Jiang et al., OSDI 2020): credit counts pieces, and what does not fit is passed over.

    Without `credits` its scheduling is off: everything is handed over at once.
    """
    return OverlapPolicy(
        partition_bytes, inf if credits is None else credits * partition_bytes, window=CreditWindow.SKIP
    )
