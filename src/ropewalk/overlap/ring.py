"""A symmetric ring as one of its ranks sees it: what a message, an addition and a launch take.

The model of one link (`link.py`) knows an all-reduce as one operation. Here it is taken apart: a rank sends shards
around the ring from a port, mixes what arrives into its own on an adder, and launches operations from its host. Each of
them does one thing at a time, and all of them work side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.errors import Findings, StrategyError
from ropewalk.overlap._stream_kernel import ResourceCosts
from ropewalk.overlap.link import Link, ring_link

PORT_SHARE = 1 / 3
"""Of what a round costs besides its bytes, taken to keep its port busy where only the whole is known."""


@dataclass(frozen=True)
class RankRing:
    """Equal ranks on a ring, each with a port, an adder and a launcher.

    >>> ring = RankRing(ranks=4, bandwidth=1e9, mixer=Mixer(2e9))
    >>> ring.wire_s(4e6), ring.mix_s(4e6)
    (0.006, 0.0015)
    """

    ranks: int
    bandwidth: float
    """Bytes/s of a port, in one direction."""
    mixer: Mixer = FREE
    """Adds what arrives at a rank to its own."""
    latency_s: float = 0.0
    """From the end of a message at its sender until its receiver can use it."""
    message_s: float = 0.0
    """What sending a message costs besides its bytes; the port is busy meanwhile."""
    launch_s: float = 0.0
    """What handing one operation over costs; the launcher is busy meanwhile, the port is not."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "ring of ranks")
        if self.ranks < 2:
            findings.add(f"{self.ranks} rank: a ring needs 2 or more")
        if not 0 < self.bandwidth < inf:
            findings.add(f"bandwidth must be positive and finite, got {self.bandwidth:g} bytes/s")
        for label in ("latency_s", "message_s", "launch_s"):
            seconds = getattr(self, label)
            if not (isfinite(seconds) and seconds >= 0):
                findings.add(f"{label} must be 0 s or more, got {seconds:g} s")
        findings.raise_if_any()

    @property
    def rounds(self) -> int:
        """Of a reduce-scatter, and of an all-gather."""
        return self.ranks - 1

    def wire_s(self, size_bytes: float) -> float:
        """Seconds for which every port sends to all-reduce so many bytes of gradient."""
        return 2 * self.rounds / self.ranks * size_bytes / self.bandwidth

    def mix_s(self, size_bytes: float) -> float:
        """Seconds for which every adder mixes to all-reduce so many bytes of gradient."""
        return self.rounds / self.ranks * size_bytes / self.mixer.rate

    @property
    def rounds_s(self) -> float:
        """What the 2(n-1) rounds of one all-reduce cost however small it is."""
        return 2 * self.rounds * (self.latency_s + self.message_s)

    @property
    def costs(self) -> ResourceCosts:
        """As the kernel takes them."""
        return ResourceCosts(self.message_s, 1 / self.bandwidth, 1 / self.mixer.rate, self.latency_s, self.launch_s)

    def link(self, *, piped: bool = True) -> Link:
        """The ring as one operation at a time, for planners that know no more."""
        plain = ring_link(self.ranks, self.bandwidth, self.latency_s + self.message_s, mixer=self.mixer)
        return replace(plain, start_up_s=plain.start_up_s + self.launch_s, piped=piped)


def ring_of(link: Link, ranks: int, rounds_s: float) -> RankRing:
    """The ring of `ranks` whose all-reduces take as long as those of a link, of whose start-up `rounds_s` are rounds.

    What a round costs besides its bytes is part latency, which other messages hide, and part work of the port, which
    they do not: `PORT_SHARE` of it.

    >>> ring_of(Link(bandwidth=1e9, start_up_s=1e-3), ranks=4, rounds_s=6e-4).link().seconds(1e9)
    1.001
    """
    rounds = 2 * (ranks - 1)
    # Where other ranks add more than those of a ring would, the ring adds as much more slowly.
    rate = link.mixed * (ranks - 1) / ranks
    each = rounds_s / rounds
    return RankRing(
        ranks, link.bandwidth * rounds / ranks, replace(link.mixer, rate=rate), (1 - PORT_SHARE) * each,
        PORT_SHARE * each, link.start_up_s - rounds_s,
    )  # fmt: skip
