"""Who sends which samples to whom when a stage with m replicas feeds one with n.

Every micro-batch is split evenly over the replicas of a stage, so replica i of m owns samples i/m to (i+1)/m of it.
What two replicas share is one message; whole micro-batches dealt out in turn would leave a tail at the step's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ropewalk.errors import StrategyError


@dataclass(frozen=True)
class Message:
    """Samples that one GPU sends to another, as a part of the micro-batch."""

    source: int
    target: int
    start: Fraction
    end: Fraction

    @property
    def share(self) -> Fraction:
        """How much of the micro-batch, and so of the activation's bytes, it carries."""
        return self.end - self.start

    def samples(self, micro_batch: int) -> range:
        """Which samples these are in a micro-batch that divides evenly."""
        start, end = self.start * micro_batch, self.end * micro_batch
        if start.denominator > 1 or end.denominator > 1:
            raise StrategyError(
                f"a micro-batch of {micro_batch} samples cuts a sample between GPUs {self.source} and {self.target}: "
                "give a multiple of the replicas of both stages"
            )
        return range(int(start), int(end))


def messages(sources: Sequence[int], targets: Sequence[int]) -> tuple[Message, ...]:
    """The messages from the replicas of a stage to those of the next, in the order of the samples.

    >>> [(m.source, m.target, str(m.share)) for m in messages((0, 1, 2), (3, 4))]
    [(0, 3, '1/3'), (1, 3, '1/6'), (1, 4, '1/6'), (2, 4, '1/3')]
    """
    if not sources or not targets:
        raise StrategyError("a stage without GPUs neither sends nor receives: give both stages at least one")
    ends = {Fraction(replica + 1, len(sources)) for replica in range(len(sources))}
    ends |= {Fraction(replica + 1, len(targets)) for replica in range(len(targets))}
    found, start = [], Fraction(0)
    for end in sorted(ends):
        source, target = sources[int(start * len(sources))], targets[int(start * len(targets))]
        found.append(Message(source, target, start, end))
        start = end
    return tuple(found)


def message_count(sources: int, targets: int) -> int:
    """How many messages m replicas send to n: each boundary between samples ends one, and gcd(m, n) are common.

    >>> message_count(11, 5)
    15
    """
    return sources + targets - gcd(sources, targets)
