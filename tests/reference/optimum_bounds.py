"""Bounds that take no search: what one member, one narrow cut or plain distances already forbid.

They stand beside the optima for two reasons: an optimum above one of them is a mistake, and where one of them is
reached it explains the optimum in a sentence.
"""

from __future__ import annotations

from fractions import Fraction

from ropewalk.collectives.optimum.concurrent import rate_bound
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rooted import narrowest_between_members


def one_member_gathers(network: Network) -> Fraction:
    """All-gather: every member has to receive all shards but its own."""
    received = _received(network)
    total = network.total_weight
    return network.bandwidth(
        min(
            Fraction(total * received[member], total - weight)
            for member, weight in zip(network.members.tolist(), network.weight, strict=True)
            if weight < total
        )
    )


def all_members_exchange(network: Network) -> Fraction:
    """All-reduce where nothing on the way adds up: each of the N - 1 messages of a tree is received by a member, twice.

    Once while the sum is formed and once while it is spread, and a member receives no faster than its links.
    """
    received, sent = _received(network), _received(network.reversed())
    members = network.members.tolist()
    least = min(sum(received[member] for member in members), sum(sent[member] for member in members))
    return network.bandwidth(Fraction(least, 2 * (len(members) - 1)))


def narrowest_cut(network: Network) -> Fraction:
    """All-reduce and broadcast: everything crosses every cut between two members, in both directions for the former."""
    return network.bandwidth(narrowest_between_members(network))


def distances(network: Network) -> Fraction:
    """All-to-all: every byte takes as many links as its pair is apart, and there are only so many links."""
    rate = rate_bound(network, [Fraction(1)] * network.arcs)
    assert rate is not None, "different members are at least one link apart"
    return network.bandwidth(len(network.members) * rate)


def _received(network: Network) -> list[int]:
    """What each vertex can receive."""
    received = [0] * network.vertices
    for head, capacity in zip(network.head.tolist(), network.capacity, strict=True):
        received[head] += capacity
    return received
