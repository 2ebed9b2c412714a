"""GPUs on machines, and what it costs stages to hand activations over and replicas to add up gradients.

The cost model of DAPPLE (Fan et al., PPoPP 2021) as its planner was released: three bandwidths, one inside a machine
and two between machines, of which point-to-point traffic reaches the lower and collectives the higher. Its machines
have one NIC and GPUs wired to each other; `machines_of` describes ours, with several NICs and a switch inside, by the
same rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from ropewalk.errors import FabricError, Findings
from ropewalk.hardware import Cluster


@dataclass(frozen=True)
class Machines:
    """GPUs 0 … G-1 on machines; machine k ends before GPU `separators[k]`.

    >>> Machines(16, (8, 16)).split_concat((0, 1), (7, 8), 1e9)
    0.3333333333333333
    >>> Machines(16, (8, 16)).all_reduce(range(8), 1e9)
    0.0175
    """

    gpus: int
    separators: tuple[int, ...]
    p2p_between: float = 1e9
    """Bytes/s of a NIC, point to point."""
    collective_between: float = 3e9
    """Bytes/s of a NIC in collectives that span machines."""
    inside: float = 25e9
    """Bytes/s inside a machine: of a link between two GPUs, or of a GPU to its switch."""
    start_up_s: float = 0.0
    """Seconds before the first byte of a message moves."""
    nics: int = 1
    """NICs of a machine; GPUs that send at the same time spread over them."""
    switched: bool = False
    """Does a switch join the GPUs of a machine? Otherwise links between pairs do, and n GPUs lay n//2 rings."""

    def __post_init__(self) -> None:
        findings = Findings(FabricError, "machines")
        if not self.separators or self.separators[-1] != self.gpus:
            findings.add(f"the last of {self.separators} is not the number of GPUs: end with {self.gpus}")
        if any(end <= start for start, end in zip((0, *self.separators), self.separators, strict=False)):
            findings.add(f"separators {self.separators} do not ascend: give running totals such as 8, 16")
        for name in ("p2p_between", "collective_between", "inside"):
            if not 0 < getattr(self, name) < float("inf"):
                findings.add(f"{name} is {getattr(self, name)} bytes/s: give a positive number")
        if not 0 <= self.start_up_s < float("inf"):
            findings.add(f"start_up_s is {self.start_up_s}: give seconds, 0 or more")
        if self.nics < 1:
            findings.add(f"machines have {self.nics} NICs: give 1 or more")
        findings.raise_if_any()

    @property
    def count(self) -> int:
        """How many machines there are."""
        return len(self.separators)

    def machine_of(self, gpu: int) -> int:
        if not 0 <= gpu < self.gpus:
            raise FabricError(f"there is no GPU {gpu} among {self.gpus}: count from 0 to {self.gpus - 1}")
        return bisect_right(self.separators, gpu)

    def split_concat(self, sources: Iterable[int], targets: Iterable[int], size_bytes: float) -> float:
        """Seconds in which replicas on `sources` hand `size_bytes` of activations to replicas on `targets`."""
        return self.start_up_s + size_bytes / self.handover_rate(sources, targets)

    def handover_rate(self, sources: Iterable[int], targets: Iterable[int]) -> float:
        """Bytes/s of a whole activation from `sources` to `targets`, of which only a part may leave its machine."""
        return self._handover_rate(self._members(sources), self._members(targets))

    def all_reduce(self, gpus: Iterable[int], size_bytes: float) -> float:
        """Seconds in which replicas on `gpus` add up `size_bytes` of gradients each; nothing where there is one."""
        members = self._members(gpus)
        replicas = members.total()
        if replicas == 1:
            return 0.0
        moved = size_bytes * 2 * (replicas - 1) / replicas
        return self.start_up_s * 2 * (replicas - 1) + moved / self._sum_rate(members)

    def _members(self, gpus: Iterable[int]) -> Counter[int]:
        """How many of these GPUs are on each machine."""
        members = Counter(self.machine_of(gpu) for gpu in set(gpus))
        if not members:
            raise FabricError("a stage has no GPUs: give at least one")
        return members

    def _handover_rate(self, sources: Counter[int], targets: Counter[int]) -> float:
        if len(targets) == 1:
            (home,) = targets
            strangers = sources.total() - sources[home]
            if strangers:
                nics = min(self.nics, strangers, targets[home])
                return self.p2p_between * nics * sources.total() / strangers
        elif len(sources | targets) > 1:
            return self.collective_between * min(self._nics_used(sources), self._nics_used(targets))
        ports = min(sources.total(), targets.total()) if self.switched else 1
        return self.inside * ports

    def _sum_rate(self, members: Counter[int]) -> float:
        if len(members) > 1:
            return self.collective_between * self._nics_used(members)
        return self.inside * (1 if self.switched else members.total() // 2)

    def _nics_used(self, members: Counter[int]) -> int:
        """NICs of the machine that has the fewest in use: rings and shares are as wide as their narrowest machine."""
        return min(self.nics, *members.values())


def machines_of(cluster: Cluster, *, collective_bandwidth: float | None = None, start_up_s: float = 0.0) -> Machines:
    """A cluster as the cost model sees it; where servers differ, each is taken as its slowest.

    What the network outside lacks beyond its NICs (a thin spine, a long torus) is not in this model: simulate the plan
    for that.

    >>> from ropewalk.hardware import Given, read_cluster
    >>> machines = machines_of(read_cluster("2x8,1x4", Given(device="h100")))
    >>> machines.separators, machines.nics
    ((8, 16, 20), 4)
    """
    nic = min(group.nic_bandwidth for group in cluster.servers)
    return Machines(
        cluster.gpus,
        tuple(accumulate(cluster.server_sizes)),
        nic,
        nic if collective_bandwidth is None else collective_bandwidth,
        min(group.nvlink_bandwidth for group in cluster.servers),
        start_up_s=start_up_s,
        nics=min(group.nics for group in cluster.servers),
        switched=True,
    )
