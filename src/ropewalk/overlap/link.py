"""What synchronises gradients: one all-reduce at a time, or a parameter server with a direction for each way.

An all-reduce is one resource: two of them at once share the same NICs. With servers on hosts of their own, pushes fill
the way out of the workers and pulls the way in, so these are two resources that work at the same time. Servers that sit
on the workers' hosts use both ways for both and gain nothing over an all-reduce.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isfinite

from ropewalk.collectives.cost.form import ClosedForm
from ropewalk.collectives.cost.star import dedicated_servers, ring
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.errors import FabricError, Findings


class ExchangeKind(StrEnum):
    """How gradients are summed."""

    ALL_REDUCE = "all-reduce"
    PARAMETER_SERVER = "ps"


@dataclass(frozen=True)
class Link:
    """The network as a scheduler of gradients sees it.

    An operation on s bytes keeps its resource busy for `start_up_s` + s / `bandwidth`, and is known to be done
    `latency_s` later, while the resource may already carry the next one. For a parameter server this holds for a push
    and for a pull alike.

    Reductions add what arrives, `added` bytes for each byte of gradient, at the rate of the `mixer`. An operation that
    is `piped` adds one part while it sends the next and takes as long as the slower of the two; one that is not sends
    and adds in turn.

    >>> Link(bandwidth=1e9, start_up_s=1e-3).seconds(4e6)
    0.005
    >>> slow = Link(bandwidth=1e9, mixer=Mixer(0.25e9), added=0.5)
    >>> slow.seconds(4e6), replace(slow, piped=False).seconds(4e6), slow.half_seconds(4e6)
    (0.008, 0.012, (0.008, 0.002))
    """

    bandwidth: float
    """Bytes of gradient in a second, not bytes on the wire: a ring of n carries 2(n-1)/n bytes for each."""
    start_up_s: float = 0.0
    """What every operation costs however small it is; nothing else is carried meanwhile."""
    latency_s: float = 0.0
    """From the end of an operation until the worker knows: what a window of more than one piece hides."""
    kind: ExchangeKind = ExchangeKind.ALL_REDUCE
    mixer: Mixer = FREE
    added: float = 0.0
    """Bytes that the busiest rank adds for each byte of gradient: (n-1)/n on a ring of n, n/m on each of m servers."""
    piped: bool = True
    """Adding and sending of one operation overlap, as where it moves in many small chunks."""

    def __post_init__(self) -> None:
        findings = Findings(FabricError, f"{self.kind} link")
        if not 0 < self.bandwidth < inf:
            findings.add(f"a bandwidth of {self.bandwidth:g} bytes/s carries nothing: give a positive finite number")
        for label in ("start_up_s", "latency_s"):
            seconds = getattr(self, label)
            if not (isfinite(seconds) and seconds >= 0):
                findings.add(f"{label} is {seconds:g}: give 0 or more")
        if not (isfinite(self.added) and self.added >= 0):
            findings.add(f"{self.added:g} bytes are added for each byte: give 0 or more, such as (n-1)/n of a ring")
        findings.raise_if_any()

    @property
    def duplex(self) -> bool:
        """Is a gradient pushed and then pulled, on resources of their own?"""
        return self.kind is ExchangeKind.PARAMETER_SERVER

    def seconds(self, size_bytes: float) -> float:
        """How long one operation, a push or a pull where there are two, keeps its resource busy."""
        return self.start_up_s + size_bytes / self.throughput

    @property
    def mixed(self) -> float:
        """Bytes of gradient in a second that the mixer keeps up with."""
        return self.mixer.rate / self.added if self.added else inf

    @property
    def throughput(self) -> float:
        """Bytes of gradient in a second that operations one after the other move, sent and added."""
        return self._beside(self.bandwidth)

    def half_seconds(self, size_bytes: float) -> tuple[float, float]:
        """How long the reduce-scatter and the all-gather of an all-reduce take, without their start-ups.

        Each moves half of the bytes of the whole; only the first of them adds.
        """
        return size_bytes / self._beside(2 * self.bandwidth), size_bytes / self.bandwidth / 2

    def _beside(self, sent: float) -> float:
        """Bytes/s of something that is sent at `sent` and added."""
        if self.mixed == inf:
            return sent
        return min(sent, self.mixed) if self.piped else 1 / (1 / sent + 1 / self.mixed)

    def without_start_up(self) -> Link:
        """The same link if operations cost nothing but their bytes, sent and added side by side: what lower bounds are
        made of."""
        return replace(self, start_up_s=0.0, latency_s=0.0, piped=True)


def all_reduce_link(form: ClosedForm, bandwidth: float, alpha_s: float = 0.0, latency_s: float = 0.0) -> Link:
    """A link that runs one all-reduce after the other in the time of its closed form, on links of `bandwidth` bytes/s.

    >>> from ropewalk.collectives.cost import closed_form
    >>> from ropewalk.fabric import Torus
    >>> round(all_reduce_link(closed_form("ring", Torus((4, 4)), "dimension"), 1.25e9).bandwidth / 1e9, 3)
    2.667
    """
    if form.bandwidth_term <= 0:
        raise FabricError("all-reduce among one worker sends nothing: give 2 workers or more")
    return Link(bandwidth / float(form.bandwidth_term), form.rounds * alpha_s, latency_s)


def ring_link(
    workers: int, bandwidth: float, alpha_s: float = 0.0, latency_s: float = 0.0, mixer: Mixer = FREE
) -> Link:
    """A ring of workers whose NICs send `bandwidth` bytes/s: 2(n-1)/n of the bytes, 2(n-1) rounds of α each.

    >>> ring_link(4, 1e9, mixer=Mixer(0.5e9)).half_seconds(1e9)
    (1.5, 0.75)
    """
    _at_least_two(workers)
    return replace(
        all_reduce_link(ring(workers), bandwidth, alpha_s, latency_s), mixer=mixer, added=(workers - 1) / workers
    )


def server_link(
    workers: int, servers: int, bandwidth: float, alpha_s: float = 0.0, latency_s: float = 0.0, mixer: Mixer = FREE
) -> Link:
    """Workers and parameter servers on hosts of their own, each with a NIC of `bandwidth` bytes/s both ways.

    The worker's NIC carries each byte once a way, a server's NIC the share of 1/M of all N workers. All workers push
    the same tensor at the same time, so the slower of the two NICs is the speed of both. Servers add what is pushed.

    >>> server_link(workers=16, servers=4, bandwidth=1e9).bandwidth
    250000000.0
    """
    if workers < 1:
        raise FabricError(f"a parameter server without workers ({workers}) has nothing to do: give 1 or more")
    form = dedicated_servers(workers, servers)
    one_way = float(form.bandwidth_term) / 2
    return Link(
        bandwidth / one_way,
        form.rounds / 2 * alpha_s,
        latency_s,
        ExchangeKind.PARAMETER_SERVER,
        mixer,
        workers / servers,
    )


def _at_least_two(workers: int) -> None:
    if workers < 2:
        raise FabricError(f"{workers} worker needs no synchronisation: give 2 or more")
