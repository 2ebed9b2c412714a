"""Closed forms on a leaf-spine of any oversubscription.

Each of L leafs has H hosts and K = spines · cables uplinks, each u times as fast as a NIC. A phase takes as long as
the hotter of a NIC and an uplink. Spraying loads all K uplinks of a leaf alike; D-mod-K sends everything for one host
over one of them, so the H hosts of a leaf share its K down-going uplinks ⌈H/K⌉ to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from ropewalk.collectives.cost import star
from ropewalk.collectives.cost.form import HASHED, ClosedForm, Derivation, exact, nearest_fraction, written
from ropewalk.fabric import LeafSpine

SYMBOLS = "L leafs of H hosts, K uplinks per leaf, each u times a NIC"


def ring(fabric: LeafSpine, routing: str) -> ClosedForm:
    """In host order one transfer of P/N leaves each leaf in each round."""
    form = star.ring(fabric.hosts)
    if fabric.leafs == 1:
        return form
    uplinks, speed = _uplinks(fabric)
    if routing == "spray":
        return _slowed(form, "max(1, 1/(K·u))", 1 / (uplinks * speed))
    return _slowed(form, "max(1, 1/u)", 1 / speed)


def ring_both_ways(fabric: LeafSpine, routing: str) -> ClosedForm | None:
    """Two transfers of P/2N leave each leaf in each round; on one uplink together they are like one of P/N."""
    _, speed = _uplinks(fabric)
    if routing == "spray" or fabric.leafs == 1 or speed >= 1:
        return ring(fabric, routing)
    if routing == "hashed":
        apart = _slowed(star.ring(fabric.hosts), "max(1, 1/(2u))", 1 / (2 * speed))
        return apart.as_bound(HASHED)
    return None


def mesh(fabric: LeafSpine, routing: str) -> ClosedForm:
    """Per phase a leaf sends H(N-H) pieces of P/N through its uplinks."""
    hosts, local = fabric.hosts, fabric.hosts_per_leaf

    def form(shared: Fraction, symbol: str) -> ClosedForm:
        term = 2 * max(Fraction(hosts - 1, hosts), (hosts - local) * shared / hosts)
        return exact(term, 2, written(f"2 max(N-1, (N-H)·{symbol})/N", "2"), SYMBOLS)

    return _by_routing(fabric, routing, form)


def hips(fabric: LeafSpine, routing: str) -> ClosedForm:
    """Two levels: a mesh in each leaf, then a mesh across leafs on the H-th part that each host holds."""
    rounds = 2 * ((fabric.hosts_per_leaf > 1) + (fabric.leafs > 1))
    return _leaf_then_across(fabric, routing, rounds, str(rounds))


def halving_doubling(fabric: LeafSpine, routing: str) -> ClosedForm | None:
    """Nearest partners first: log₂H rounds stay in the leaf, then whole leafs exchange in pairs."""
    if fabric.hosts & (fabric.hosts - 1):
        return None
    return _leaf_then_across(fabric, routing, 2 * (fabric.hosts.bit_length() - 1), "2 log₂N ")


def server(fabric: LeafSpine, routing: str) -> ClosedForm:
    """N-H workers reach the server through its leaf: on one uplink when pushing by D-mod-K, spread when pulling."""
    nic, remote = Fraction(fabric.hosts - 1), fabric.hosts - fabric.hosts_per_leaf
    uplinks, speed = _uplinks(fabric)
    if routing == "dmodk":
        push, pull = max(nic, remote / speed), max(nic, -(-remote // uplinks) / speed)
        return exact(push + pull, 2, written("(max(N-1, (N-H)/u) + max(N-1, ⌈(N-H)/K⌉/u))", "2"), SYMBOLS)
    spread = exact(2 * max(nic, remote / (uplinks * speed)), 2, written("2 max(N-1, (N-H)/(K·u))", "2"), SYMBOLS)
    # With uplinks as fast as NICs the worst hash still leaves the server's NIC the hottest link.
    return spread if routing == "spray" or remote / speed <= nic else spread.as_bound(HASHED)


def _leaf_then_across(fabric: LeafSpine, routing: str, rounds: int, rounds_text: str) -> ClosedForm:
    leafs, local = fabric.leafs, fabric.hosts_per_leaf

    def form(shared: Fraction, symbol: str) -> ClosedForm:
        across = Fraction(leafs - 1, fabric.hosts) * max(Fraction(1), shared)
        term = 2 * (Fraction(local - 1, local) + across)
        return exact(term, rounds, written(f"2((H-1)/H + (L-1)/N·max(1, {symbol}))", rounds_text), SYMBOLS)

    found = _by_routing(fabric, routing, form)
    uplinks, _ = _uplinks(fabric)
    if routing == "dmodk" and fabric.leafs > 1 and local > uplinks and local % uplinks:
        # Some uplinks are shared by one host more than others: ranks get out of step, and the rounds overlap.
        return replace(found, edition="counted")
    return found


def _by_routing(fabric: LeafSpine, routing: str, form: Callable[[Fraction, str], ClosedForm]) -> ClosedForm:
    """Hosts that share one uplink of their leaf, in units of what the uplink can carry."""
    uplinks, speed = _uplinks(fabric)
    if routing == "dmodk":
        return form(-(-fabric.hosts_per_leaf // uplinks) / speed, "⌈H/K⌉/u")
    even = form(fabric.hosts_per_leaf / (uplinks * speed), "H/(K·u)")
    return even if routing == "spray" or fabric.leafs == 1 else even.as_bound(HASHED)


def _slowed(form: ClosedForm, symbol: str, uplink: Fraction) -> ClosedForm:
    slow = max(Fraction(1), uplink)
    return exact(form.bandwidth_term * slow, form.rounds, written(f"2(N-1)/N·{symbol}", "2(N-1)"), SYMBOLS)


def _uplinks(fabric: LeafSpine) -> tuple[int, Fraction]:
    """Uplinks of a leaf, and the bandwidth of one in units of a NIC."""
    return fabric.spines * fabric.cables, nearest_fraction(fabric.uplink / fabric.bandwidth)


LEAF_SPINE_FORMS: Mapping[str, Derivation] = {
    "ring": ring,
    "ring-one-way": ring,
    "double-ring": ring_both_ways,
    "mesh": mesh,
    "ps": server,
    "ps-dedicated": server,
    "ps-sharded": mesh,
    "halving-doubling": halving_doubling,
    "hips": hips,
}
