"""Closed forms on a fat-tree of three tiers, wholly or partly populated with pods.

A pod sends no more than its hosts do, and D-mod-K gives every destination its own down-going links: the NIC of a host
is the hottest link of every collective whose arrows keep the position in the tree (mesh, hierarchy, halving-doubling
over a power of two), and of every collective at all when packets are sprayed. In an oversubscribed tree only rings and
single servers keep their form; all others are counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from ropewalk.collectives.cost import star
from ropewalk.collectives.cost.form import HASHED, ClosedForm, Derivation
from ropewalk.fabric import FatTree

ANY_ROUTING = "no two transfers share a link above the NICs, so every routing gives this"


def ring(tree: FatTree, routing: str) -> ClosedForm:
    """In host order one transfer (or two halves) leaves each edge switch and each pod: nothing can collide."""
    return star.ring(tree.hosts).with_note(ANY_ROUTING)


def mesh(tree: FatTree, routing: str) -> ClosedForm | None:
    return _balanced(tree, star.mesh(tree.hosts), routing)


def server(tree: FatTree, routing: str) -> ClosedForm:
    """All N-1 transfers of a phase share the NIC of the server; no other link can carry more than these."""
    return star.server(tree.hosts).with_note("the NIC of the server is the hottest link under every routing")


def halving_doubling(tree: FatTree, routing: str) -> ClosedForm | None:
    """Partners keep their position below the level that they exchange over when N is a power of two.

    Folding breaks that: with D-mod-K two of the folded transfers may share a link, which only counting shows.
    """
    whole = tree.hosts & (tree.hosts - 1) == 0
    if routing == "dmodk" and not whole:
        return None
    return _balanced(tree, star.halving_doubling(tree.hosts), routing)


def hips(tree: FatTree, routing: str) -> ClosedForm | None:
    """Three levels: the hosts of an edge switch, the edge switches of a pod, the pods; a mesh in each."""
    return _balanced(tree, star.hierarchy((tree.half, tree.half, tree.pod_count)), routing)


def _balanced(tree: FatTree, form: ClosedForm, routing: str) -> ClosedForm | None:
    """The form where no uplink can carry more than a NIC."""
    if tree.oversubscription > 1:
        return None
    return form.as_bound(HASHED) if routing == "hashed" else form


FAT_TREE_FORMS: Mapping[str, Derivation] = {
    "ring": ring,
    "ring-one-way": ring,
    "double-ring": ring,
    "mesh": mesh,
    "ps": server,
    "ps-dedicated": server,
    "ps-sharded": mesh,
    "halving-doubling": halving_doubling,
    "hips": hips,
}
