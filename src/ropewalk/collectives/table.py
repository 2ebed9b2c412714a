"""All collectives by name: what each is, which acts it has, where it applies, and how it is made for a group.

A collective is made as a `Program`, whose sends the network routes, or as a `Schedule` with paths of its own. Adding
one takes a file that makes it and one record here.

>>> from ropewalk.fabric import Torus
>>> program_on(Torus((4, 4)).build(), "hips").name
'hips'
>>> COLLECTIVES.refusal("xor", Act.ALL_TO_ALL, Group((1,) * 6)).partition(":")[0]
'collective xor needs a power of two of ranks, and there are 6'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from numpy.typing import ArrayLike

from ropewalk import palette
from ropewalk.choices import Choice, Choices, anywhere
from ropewalk.collectives.act import Act
from ropewalk.collectives.bruck import bruck_all_gather, bruck_all_reduce, bruck_reduce_scatter
from ropewalk.collectives.double_tree import double_tree_all_reduce
from ropewalk.collectives.exchange import direct_all_to_all, shift_all_to_all, xor_all_to_all
from ropewalk.collectives.folding import folded_halving_doubling
from ropewalk.collectives.for_groups import (
    ALL_BUT_EXCHANGES,
    BINOMIAL,
    CHAINS,
    Fits,
    Makers,
    blocks_first,
    equal_blocks,
    equal_shards,
    halves,
    halves_of_pairs,
    hierarchical_exchange,
    hierarchy_of_fabric,
    made_for_network,
    no_prime,
    of_ranks,
    one_ring,
    power_of_two,
    rings_of,
    spare_rank,
    whole_blocks,
)
from ropewalk.collectives.group import Group, whole_fabric
from ropewalk.collectives.halving_doubling import (
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
)
from ropewalk.collectives.mesh import mesh_all_gather, mesh_all_reduce, mesh_reduce_scatter
from ropewalk.collectives.over_servers import server_rings
from ropewalk.collectives.parameter_server import dedicated_servers, shared_servers
from ropewalk.collectives.pat import pat_all_gather, pat_reduce_scatter
from ropewalk.collectives.peers import mesh_inside, ring_inside
from ropewalk.collectives.program import Program
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.trees import binomial_all_reduce
from ropewalk.errors import ProgramError
from ropewalk.fabric import Fabric


@dataclass(frozen=True)
class Collective(Choice[Makers]):
    """A way to run one or several acts over a group."""

    own_paths: bool = False
    """Whether it is made for the network and brings its paths; otherwise it is a program that the network routes."""
    in_libraries: frozenset[Act] = frozenset()
    """Acts for which a good library runs it: what schedules that are made for a network are compared with."""
    chooses: bool = False
    """Whether it stands for a library that chooses by size among others; as a program it is what large buffers run."""
    auto_up_to: int | None = None
    """Ranks of a group up to which `auto` looks at it: 0 where others are always as good, None for any number."""

    @property
    def all_reduces(self) -> bool:
        """Is it one all-reduce, whatever the size, that the network routes?"""
        return Act.ALL_REDUCE in self.make and not self.own_paths and not self.chooses

    def facts(self) -> dict[str, str]:
        return {"runs": ", ".join(act.words for act in self.make)} | super().facts()

    def program(self, act: Act, group: Group) -> Program:
        """The program for a group to which it applies."""
        made = self.make[act](group)
        return made.program if isinstance(made, Schedule) else made

    def schedule(self, act: Act, group: Group) -> Schedule:
        """The program with its paths: its own, or such that spread its bytes over the network."""
        made = self.make[act](group)
        if isinstance(made, Schedule):
            return made
        from ropewalk.collectives.best_ring import on_members  # loads Numba, which programs do without

        return on_members(self.name, made, group.network)


def program_on(fabric: Fabric, name: str, act: Act = Act.ALL_REDUCE) -> Program:
    """The program of a collective over all hosts of a fabric; refused where it does not apply."""
    group = whole_fabric(fabric)
    return COLLECTIVES.fitting(name, act, group).program(act, group)


def beside(act: Act) -> str:
    """What an act runs where the collective that was chosen does not have it."""
    return "direct" if act is Act.ALL_TO_ALL else "ring"


def with_rings(orders: Callable[[int], Sequence[ArrayLike]]) -> Choices[Collective]:
    """The same table where `ring` visits the servers of a group in given orders, which their number decides.

    >>> with_rings(lambda servers: [range(servers)])["ring"].program(Act.ALL_REDUCE, Group((2,) * 4)).lanes
    1
    """
    ring = COLLECTIVES["ring"]
    laid = halves(lambda group: server_rings(group.servers, orders(len(group.servers))), "ring")
    records = (replace(ring, make={**ring.make, **laid}) if one is ring else one for one in COLLECTIVES.values())
    return Choices(COLLECTIVES.kind, records, error=COLLECTIVES.error)


def _applies(make: Makers, own_paths: bool, fits: Fits) -> Callable[[Act, Group], str | None]:
    def applies(act: Act, group: Group) -> str | None:
        if act not in make:
            return f"is no {act.words}, but an {' or '.join(each.words for each in make)}"
        if own_paths and not group.own_paths:
            return "has its own paths, but here the network routes transfers"
        if own_paths and group.fabric is None and group.given is None:
            return "is built for a given network, and the network is unknown here"
        if group.ranks < 2:
            return "needs two or more ranks, and there is one"
        return fits(act, group)

    return applies


def _record(name: str, about: str, make: Makers, *, fits: Fits = anywhere, where: str = "everywhere", title: str = "",
            colour: palette.Colour | None = None, own_paths: bool = False,
            in_libraries: bool = False, rival_in: tuple[Act, ...] = (),
            chooses: bool = False, auto_up_to: int | None = None) -> Collective:  # fmt: skip
    applies = _applies(make, own_paths, fits)
    rival = frozenset(make if in_libraries else rival_in)
    return Collective(name, make, about, applies, where, title, colour, own_paths, rival, chooses, auto_up_to)


COLLECTIVES: Choices[Collective] = Choices(
    "collective",
    (
        _record("ring", "rings through all ranks, one per GPU of a server; both directions of all edge-disjoint "
                "cycles of a torus, BCube or hypercube", halves(rings_of, "ring") | CHAINS,
                fits=equal_shards, colour=palette.BLUE, in_libraries=True),
        _record("ring-one-way", "one ring through all ranks",
                halves(partial(one_ring, both_ways=False), "ring-one-way"),
                fits=equal_shards, title="ring (one direction)", colour=palette.SKY, auto_up_to=0),
        _record("double-ring", "two rings in opposite directions, half the buffer each",
                halves(partial(one_ring, both_ways=True), "double-ring"),
                fits=equal_shards, title="double ring", colour=palette.NAVY),
        _record("best-ring", "the rings that a search over orders finds best on this network",
                made_for_network("best-ring", ALL_BUT_EXCHANGES), fits=equal_shards, own_paths=True,
                in_libraries=True, title="best rings", colour=palette.STEEL, auto_up_to=64),
        _record("mesh", "every rank exchanges with every other at once", of_ranks(
                    all_reduce=mesh_all_reduce, all_gather=mesh_all_gather, reduce_scatter=mesh_reduce_scatter,
                ) | BINOMIAL, fits=equal_shards, colour=palette.GREEN, in_libraries=True, auto_up_to=256),
        _record("ps", "one rank is the parameter server of all, including itself",
                of_ranks(all_reduce=shared_servers), title="parameter server", colour=palette.AMBER,
                auto_up_to=0),
        _record("ps-dedicated", "the last rank only serves, the others train",
                of_ranks(all_reduce=lambda ranks: dedicated_servers(ranks - 1)), fits=spare_rank,
                where="a spare rank", title="parameter server (dedicated)", colour=palette.RUST, auto_up_to=0),
        _record("ps-sharded", "every rank is the parameter server of its shard",
                of_ranks(all_reduce=lambda ranks: shared_servers(ranks, ranks)),
                title="parameter servers (sharded)", colour=palette.BROWN, auto_up_to=0),
        _record("halving-doubling", "pairs exchange halves of the remaining data, then double it back", {
                    Act.ALL_REDUCE: lambda group: folded_halving_doubling(group.leafs)
                    if group.leafs else halving_doubling_all_reduce(group.ranks),
                    **of_ranks(all_gather=doubling_all_gather, reduce_scatter=halving_reduce_scatter), **BINOMIAL,
                }, fits=halves_of_pairs, where="all-gather and reduce-scatter: powers of two",
                colour=palette.PURPLE, in_libraries=True),
        _record("double-tree", "two binary trees, half the buffer each",
                of_ranks(all_reduce=double_tree_all_reduce), title="double binary tree", colour=palette.PINK,
                in_libraries=True),
        _record("hips", "hierarchical: one level of the fabric after the other (servers, switches, pods or axes)",
                halves(hierarchy_of_fabric, "hips"), fits=no_prime, where="groups with two levels",
                title="HiPS", colour=palette.RED, in_libraries=True, auto_up_to=1024),
        _record("hierarchical", "inside every server first, then across servers between GPUs of the same index", {
                    **halves(partial(blocks_first, inside=mesh_inside), "hierarchical"),
                    Act.ALL_TO_ALL: hierarchical_exchange,
                }, fits=equal_blocks, where="equally many ranks per server", colour=palette.RED,
                rival_in=(Act.ALL_TO_ALL,), auto_up_to=1024),
        _record("hierarchical-ring", "a ring inside every server, and one ring per GPU index between servers",
                halves(partial(blocks_first, inside=ring_inside), "hierarchical ring"), fits=whole_blocks,
                where="equally many ranks per server", title="hierarchical ring", colour=palette.PINK),
        _record("bruck", "sends of doubling distance: the fewest rounds for any number of ranks", of_ranks(
                    all_reduce=bruck_all_reduce, all_gather=bruck_all_gather, reduce_scatter=bruck_reduce_scatter,
                ), fits=equal_shards, colour=palette.BROWN, in_libraries=True),
        _record("pat", "concurrent binomial trees from all ranks, farthest sends first: few rounds, and little "
                "data over long distances", of_ranks(all_gather=pat_all_gather, reduce_scatter=pat_reduce_scatter),
                fits=equal_shards, title="PAT", colour=palette.SKY, in_libraries=True, auto_up_to=256),
        _record("binomial", "a binomial tree, the whole buffer at every hop",
                of_ranks(all_reduce=binomial_all_reduce) | BINOMIAL, title="binomial tree", colour=palette.RUST,
                in_libraries=True),
        _record("forest", "trees with exact rates that reach the optimum of this network; paths for an all-to-all",
                made_for_network("forest", ALL_BUT_EXCHANGES) | made_for_network("paths", (Act.ALL_TO_ALL,)),
                own_paths=True, colour=palette.INK, auto_up_to=256),
        _record("topoadopt", "trees packed by multiplicative weights, close to the optimum",
                made_for_network("topoadopt", ALL_BUT_EXCHANGES), own_paths=True, title="TopoAdopt",
                colour=palette.INK, auto_up_to=0),
        _record("breadth-first", "all data takes shortest paths: the fewest rounds on this network",
                made_for_network("breadth-first", ALL_BUT_EXCHANGES), own_paths=True, title="breadth first",
                colour=palette.AMBER, in_libraries=True, auto_up_to=64),
        _record("direct", "all pairs at once", of_ranks(all_to_all=direct_all_to_all), colour=palette.GREEN,
                in_libraries=True),
        _record("shift", "round k: every rank sends to the rank k ahead", of_ranks(all_to_all=shift_all_to_all),
                colour=palette.BLUE, in_libraries=True),
        _record("xor", "round k: rank i exchanges with rank i xor k",
                of_ranks(all_to_all=xor_all_to_all), fits=power_of_two, where="powers of two", colour=palette.PURPLE,
                in_libraries=True),
        _record("nccl", "what NCCL chooses per size and group: ring, tree, NVLS, PAT with LL, LL128 or Simple, "
                "its latencies and rates; as a single program its rings",
                halves(rings_of, "ring") | CHAINS | of_ranks(all_to_all=direct_all_to_all), fits=equal_shards,
                title="NCCL's choice", colour=palette.STEEL, chooses=True, auto_up_to=0),
    ),
    error=ProgramError,
)  # fmt: skip
"""By the name people type."""
