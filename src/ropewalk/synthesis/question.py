"""What is asked: a collective, a fabric, and what is special about the group that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ropewalk.collectives.act import Act
from ropewalk.collectives.mixer import FREE, Mixer, MixPlace
from ropewalk.collectives.optimum import Network, network_of
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import Findings, ProgramError
from ropewalk.fabric import Fabric
from ropewalk.units import show_size

KINDS = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall")
"""Collectives as they are written on the command line."""
ROOTED = ("broadcast", "reduce")
REDUCING = ("allreduce", "reducescatter", "reduce")
METHODS = (*COLLECTIVES, "fixed")
"""How the schedule is made: any collective of the table, or so many equal trees for each root."""


MOST_TREES = 1024
"""Equal trees of each root; every one is a schedule of its own."""


@dataclass(frozen=True, eq=False)
class CollectiveQuestion:
    """A collective on a fabric.

    >>> from ropewalk.fabric import Torus
    >>> CollectiveQuestion("allgather", Torus((3, 3)).build()).network().arcs
    36
    """

    collective: str
    fabric: Fabric
    group: Sequence[int] | None = None
    """Hosts of the group in the order of ranks; all others only forward. All hosts unless given."""
    root: int | None = None
    """The host that a broadcast starts from or a reduce ends at; the first of the group unless given."""
    shards: Sequence[int | float | Fraction] | None = None
    host_limits: Sequence[float] | None = None
    """Bytes/s that each host of the fabric can send, and as much receive, over all its links."""
    in_network: bool = False
    """Whether switches copy and add up: the optimum is then a bound, and there are no trees for it."""
    method: str = "forest"
    trees_per_root: int | None = None
    """Equal trees of each root, for method `fixed`."""
    epsilon: float = 0.05
    """How close to the optimum multiplicative weights aim."""
    size_bytes: int = 1 << 30
    start_up_s: float = 10e-6
    sizes: tuple[int, ...] = ()
    """Sizes for which the fastest schedule is wanted."""
    compare: bool = True
    """Whether to simulate the schedule and its alternatives."""
    mixer: Mixer = FREE
    """Who adds up what is reduced: every rank, or where switches do so (`in_network`) every switch."""

    def __post_init__(self) -> None:
        findings = Findings(ProgramError, "collective")
        if self.collective not in KINDS:
            findings.add(f"there is no collective {self.collective!r}: choose {', '.join(KINDS)}")
        if self.method not in METHODS:
            findings.add(COLLECTIVES.unknown(self.method, also=("fixed",)))
        elif self.method != "fixed" and self.collective in KINDS:
            self._check_acts(findings)
        if self.root is not None and self.collective not in ROOTED:
            findings.add(f"{self.collective} has no root: leave it out")
        if self.method == "fixed" and (self.trees_per_root is None or self.trees_per_root < 1):
            findings.add("the number of equal trees is missing: give trees per root, at least 1")
        elif self.method == "fixed" and (self.trees_per_root or 0) > MOST_TREES:
            findings.add(f"{self.trees_per_root} trees per root are too many: give at most {MOST_TREES}")
        if self.method == "topoadopt" and not 0 < self.epsilon < 1:
            findings.add(f"epsilon is {self.epsilon:g}: give a number between 0 and 1, such as 0.05")
        if self.shards is not None and self.collective not in ("allgather", "reducescatter"):
            findings.add(f"{self.collective} takes no shards: leave them out")
        if self.collective == "alltoall" and self.method == "fixed":
            findings.add("an all-to-all uses paths, not trees: leave the method out")
        if self.in_network and self.method != "forest":
            findings.add("trees are for switches that only forward: leave --method or --in-network out")
        if not self.mixer.free and self.in_network != (self.mixer.place is MixPlace.NETWORK):
            findings.add(
                f"switches reduce here, not ranks: write --mix network:{show_size(self.mixer.rate).replace(' ', '')}/s"
                if self.in_network
                else "ranks reduce here, not switches: leave network out of --mix, or add --in-network"
            )
        if self.size_bytes < 1:
            findings.add("the size is 0 bytes: give at least 1")
        if any(size < 1 for size in self.sizes):
            findings.add("one of the sizes to compare is 0 bytes: give at least 1 each")
        findings.raise_if_any()

    def _check_acts(self, findings: Findings) -> None:
        act = Act.of_key(self.collective)
        if act not in COLLECTIVES[self.method].make:
            having = [name for name, one in COLLECTIVES.items() if act in one.make]
            findings.add(f"{self.method} is not for {act.words}: choose {', '.join(having)}")

    def network(self) -> Network:
        """The network of the group, checked."""
        return network_of(
            self.fabric, self.group, shards=self.shards, host_limits=self.host_limits, copying=self.in_network
        )

    @property
    def reduces(self) -> bool:
        """Is anything added up?"""
        return self.collective in REDUCING

    @property
    def mixer_of_ranks(self) -> Mixer:
        """Who adds up where ranks do so; nothing is said about them where switches do."""
        return FREE if self.in_network else self.mixer

    @property
    def root_host(self) -> int:
        if self.root is not None:
            return self.root
        return 0 if self.group is None else int(self.group[0])
