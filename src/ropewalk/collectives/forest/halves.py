"""The halves of a forest that do what a collective asks for: what reduces and what spreads."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ropewalk.collectives.along_trees import TREE_COLLECTIVES, TreeCollective
from ropewalk.collectives.forest.forest import Forest
from ropewalk.collectives.forest.synthesis import AllReduceForest
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import ProgramError


@dataclass(frozen=True)
class Halves:
    """A forest taken apart for a purpose; at least one half is there."""

    purpose: TreeCollective
    reducing: Forest | None
    spreading: Forest | None

    @property
    def both(self) -> tuple[Forest, ...]:
        """The halves that are there."""
        return tuple(half for half in (self.reducing, self.spreading) if half is not None)

    @property
    def network(self) -> Network:
        """The network as the fabric has it, not reversed."""
        network = self.both[-1].network
        return network.reversed() if network.backwards else network


def halves_of(forest: Forest | AllReduceForest, collective: str) -> Halves:
    """The halves that carry a collective; refuses forests that are made for another one."""
    if collective not in TREE_COLLECTIVES:
        raise ProgramError(f"a forest does not support {collective!r}: choose {', '.join(TREE_COLLECTIVES)}")
    purpose = TREE_COLLECTIVES[collective]
    halves = Halves(purpose, *_apart(forest))
    found = halves.reducing is not None, halves.spreading is not None
    if found != (purpose.reduces, purpose.spreads):
        does = " and ".join(verb for there, verb in zip(found, ("reduces", "spreads"), strict=True) if there)
        raise ProgramError(f"a forest that {does} is no {purpose.title}: give the forest of this collective")
    for half in halves.both:
        _check_roots(half, purpose)
    return halves


def _apart(forest: Forest | AllReduceForest) -> tuple[Forest | None, Forest | None]:
    """What reduces and what spreads; a forest on a reversed network reduces."""
    if not isinstance(forest, Forest):
        return forest.reducing, forest.spreading
    return (forest, None) if forest.network.backwards else (None, forest)


def _check_roots(forest: Forest, purpose: TreeCollective) -> None:
    """Roots of a broadcast or reduce are one; those of shards have rates in their proportion."""
    rates, network = forest.root_rates(), forest.network
    if purpose.one_root and len(rates) > 1:
        raise ProgramError(
            f"a {purpose.title} has one root, but this forest has {len(rates)}: give a forest of one root"
        )
    if purpose.one_root or (purpose.reduces and purpose.spreads):
        return
    for member, weight in zip(network.members.tolist(), network.weight, strict=True):
        if rates.get(member, Fraction(0)) * network.total_weight != forest.algbw * weight:
            raise ProgramError(
                f"host {member} has {weight} of {network.total_weight} parts of the {purpose.title}, but its trees "
                "carry another part: give a forest with rates in proportion to the shards"
            )
