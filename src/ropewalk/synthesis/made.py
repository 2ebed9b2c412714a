"""The schedule of a question: exact trees, an approximation, equal trees, rounds, or the paths of an all-to-all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ropewalk.collectives.act import Act
from ropewalk.collectives.all_to_all.decompose import best_paths
from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.all_to_all.schedule import direct_schedule, relayed_schedule
from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.forest.fixed import fixed_forest
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.forest.segments import best_segments, forest_seconds
from ropewalk.collectives.group import group_on
from ropewalk.collectives.latency import LinearTime, schedule_cost
from ropewalk.collectives.optimum import Network
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.synthesised import ADOPTED, FORESTS, AnyForest
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.collectives.topoadopt import TopoAdopt
from ropewalk.synthesis.question import ROOTED, CollectiveQuestion


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees that carry a collective; the buffer is cut into segments that follow each other down the branches."""

    question: CollectiveQuestion
    forest: AnyForest
    approximation: TopoAdopt[Forest] | TopoAdopt[AllReduceForest] | None = None

    @property
    def name(self) -> str:
        return self.question.method

    @property
    def algbw(self) -> Fraction:
        """Bytes/s of large buffers: what its trees carry, or what its busiest rank adds up meanwhile."""
        mixer = self.question.mixer
        if mixer.free or not self._added:
            return self.forest.algbw
        return min(self.forest.algbw, Fraction(mixer.rate) / self._added)

    @property
    def depth(self) -> int:
        return self.forest.depth

    @property
    def trees(self) -> int:
        return self.forest.tree_count

    @property
    def shape(self) -> str:
        """What it is made of, in words."""
        return f"{self.trees} trees, depth {self.depth}"

    def segments_for(self, size_bytes: int) -> int:
        """The best number of pipeline segments for a buffer."""
        return best_segments(size_bytes, self.algbw, self.depth, self.question.start_up_s)

    def seconds_for(self, size_bytes: int) -> float:
        """Seconds of a buffer at its best number of segments, by the closed form."""
        segments = self.segments_for(size_bytes)
        return forest_seconds(size_bytes, self.algbw, self.depth, self.question.start_up_s, segments)

    @property
    def least_sends(self) -> int:
        """Sends of a segment: a tree reaches every rank but its root, by a branch or more."""
        return self.trees * (len(self.forest.network.members) - 1)

    @cached_property
    def _added(self) -> Fraction:
        """Buffers that the busiest rank adds up."""
        program = self.schedule().program
        return Fraction(int(program.added_chunks().max()), program.buffer_chunks)

    def schedule(self, segments: int = 1, *, runnable: bool = False, equal_lanes: bool = False) -> Schedule:
        """The program and its ways; `runnable` makes ranks of hosts outside the group that forward."""
        return forest_schedule(
            self.forest, self.question.collective, segments, relays_as_ranks=runnable, equal_lanes=equal_lanes
        )


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths between all pairs, which carry an all-to-all."""

    question: CollectiveQuestion
    paths: PairPaths
    trees: int = 0
    approximation: None = None
    name: str = "paths"
    least_sends: int = 0

    @property
    def forest(self) -> None:
        return None

    @property
    def algbw(self) -> Fraction:
        return self.paths.algbw

    @cached_property
    def depth(self) -> int:
        """Links on the longest path, all of which carry bytes at the same time."""
        return int(self.paths.hops.max())

    @property
    def shape(self) -> str:
        return f"paths of up to {self.depth} links"

    def segments_for(self, size_bytes: int) -> int:
        return 1

    def seconds_for(self, size_bytes: int) -> float:
        """One start-up, then all bytes at once."""
        return self.question.start_up_s + size_bytes / float(self.algbw)

    def schedule(self, segments: int = 1, *, runnable: bool = False, equal_lanes: bool = False) -> Schedule:
        """All pairs at once through the network; `runnable` lets the ranks on the way receive and send on."""
        return relayed_schedule(self.paths, segments, relays_as_ranks=True) if runnable else direct_schedule(self.paths)


@dataclass(frozen=True, eq=False)
class Rounds:
    """A schedule of rounds in lockstep: any collective of the table that is not made of trees or paths."""

    question: CollectiveQuestion
    network: Network
    trees: int = 0
    approximation: None = None
    least_sends: int = 0

    @property
    def name(self) -> str:
        return self.question.method

    @property
    def forest(self) -> None:
        return None

    @cached_property
    def _schedule(self) -> Schedule:
        root = self.question.root_host if self.question.collective in ROOTED else None
        act, group = Act.of_key(self.question.collective), group_on(self.network, root)
        return COLLECTIVES.fitting(self.question.method, act, group).schedule(act, group)

    @cached_property
    def cost(self) -> LinearTime:
        return schedule_cost(self._schedule, self.network, self.question.mixer)

    @property
    def algbw(self) -> Fraction:
        return 1 / self.cost.seconds_per_byte

    @property
    def depth(self) -> int:
        """Rounds that follow each other."""
        return self.cost.rounds

    @property
    def shape(self) -> str:
        return f"{self.depth} rounds"

    def segments_for(self, size_bytes: int) -> int:
        return 1

    def seconds_for(self, size_bytes: int) -> float:
        return self.cost.seconds(size_bytes, self.question.start_up_s)

    def schedule(self, segments: int = 1, *, runnable: bool = False, equal_lanes: bool = False) -> Schedule:
        """The same program for any buffer: a ring is cut by its ranks."""
        return self._schedule


Made = Trees | Paths | Rounds


def made(question: CollectiveQuestion, network: Network) -> Made:
    """The schedule that a question asks for."""
    act, root = Act.of_key(question.collective), question.root_host
    if question.method == "forest" and act is Act.ALL_TO_ALL:
        return Paths(question, best_paths(network))
    if question.method == "forest":
        return Trees(question, FORESTS[act](network, root))
    if question.method == "topoadopt":
        found = ADOPTED[act](network, root, question.epsilon)
        return Trees(question, found.forest, found)
    if question.method == "fixed":
        assert question.trees_per_root is not None
        return Trees(question, fixed_forest(network, question.trees_per_root, question.collective))
    return Rounds(question, network)
