"""The plant: the leaf-spine cluster an operator has, as servers on leafs and cables from leafs to spines.

>>> small = plant("leaf-spine:4x8x8", gpus_per_server=4)
>>> small.gpus, small.servers, small.leafs, small.spines
(32, 8, 4, 8)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric import Fabric, LeafSpine
from ropewalk.fabric.expression import builder
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, FabricDraft
from ropewalk.fabric.parameters import at_least, numbered, speeds

DEFAULT_SERVER_BANDWIDTH = 125e9
"""1000 Gbps from a GPU to the others inside its server, in bytes/s."""
MOST_GPUS_PER_SERVER = 62
"""The free GPUs of a server are the bits of one signed 64-bit number."""
MOST_CABLES = 62
"""The free cables between a leaf and a spine are the bits of one, too."""


@dataclass(frozen=True, eq=False)
class Plant:
    """Servers of equal size on leafs; GPU g is on server g // gpus_per_server. Bandwidths are bytes/s, one way.

    Leafs may hold different numbers of servers and have cables to different spines. Names left out are numbered.
    """

    name: str
    gpus_per_server: int
    server_leaf: NDArray[np.int32]
    """Leaf of every server; servers are sorted by leaf."""
    cables: NDArray[np.int32]
    """[leaf, spine]: parallel cables between the two, 0 where there are none."""
    nic_bandwidth: float = DEFAULT_BANDWIDTH
    link_bandwidth: float = DEFAULT_BANDWIDTH
    """Of one leaf-spine cable."""
    server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH
    """Of a GPU towards the others inside its server."""
    server_names: tuple[str, ...] = ()
    leaf_names: tuple[str, ...] = ()
    spine_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, values, shape in (("server_leaf", self.server_leaf, 1), ("cables", self.cables, 2)):
            array = np.array(values, np.int32)
            if array.ndim != shape:
                raise FabricError(f"plant {self.name}: {field} has {array.ndim} dimensions: give {shape}")
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        for field, prefix, count in (
            ("server_names", "server", self.servers),
            ("leaf_names", "leaf", self.leafs),
            ("spine_names", "spine", self.spines),
        ):
            names = tuple(getattr(self, field))
            object.__setattr__(self, field, names or tuple(numbered(prefix, count)))
        self._check()

    def _check(self) -> None:
        findings = Findings(FabricError, f"plant {self.name}")
        at_least(findings, 1, leafs=self.leafs, servers=self.servers, gpus_per_server=self.gpus_per_server)
        speeds(
            findings,
            0.0,
            nic_bandwidth=self.nic_bandwidth,
            link_bandwidth=self.link_bandwidth,
            server_bandwidth=self.server_bandwidth,
        )
        if self.gpus_per_server > MOST_GPUS_PER_SERVER:
            findings.add(f"a server has {self.gpus_per_server} GPUs: give {MOST_GPUS_PER_SERVER} or fewer")
        leaf = self.server_leaf
        if self.servers and (leaf.min() < 0 or leaf.max() >= self.leafs):
            findings.add(f"a server is on leaf {leaf.max()} of {self.leafs}: give a row of cables for every leaf")
        if (np.diff(leaf) < 0).any():
            findings.add("servers are not sorted by leaf: list them leaf by leaf")
        if self.cables.size and (self.cables.min() < 0 or self.cables.max() > MOST_CABLES):
            findings.add(f"cables range from {self.cables.min()} to {self.cables.max()}: give 0 to {MOST_CABLES}")
        for what, names, count in (
            ("server", self.server_names, self.servers),
            ("leaf", self.leaf_names, self.leafs),
            ("spine", self.spine_names, self.spines),
        ):
            _check_names(findings, what, names, count)
        findings.raise_if_any()

    @property
    def leafs(self) -> int:
        return int(self.cables.shape[0])

    @property
    def spines(self) -> int:
        return int(self.cables.shape[1])

    @property
    def servers(self) -> int:
        return len(self.server_leaf)

    @property
    def gpus(self) -> int:
        return self.servers * self.gpus_per_server

    @cached_property
    def servers_per_leaf(self) -> NDArray[np.int64]:
        return np.bincount(self.server_leaf, minlength=self.leafs).astype(np.int64)

    @cached_property
    def gpus_per_leaf(self) -> NDArray[np.int64]:
        return self.servers_per_leaf * self.gpus_per_server

    @cached_property
    def first_server(self) -> NDArray[np.int64]:
        """Servers of leaf i are `first_server[i]` to `first_server[i + 1]` - 1."""
        return np.concatenate([[0], np.cumsum(self.servers_per_leaf)]).astype(np.int64)

    @cached_property
    def leaf_of_gpu(self) -> NDArray[np.int32]:
        return np.repeat(self.server_leaf, self.gpus_per_server)

    @cached_property
    def first_cable(self) -> NDArray[np.int64]:
        """[leaf, spine]: cables of all earlier pairs; cable c of the pair is number `first_cable + c`."""
        count = self.cables.ravel().astype(np.int64)
        return (np.cumsum(count) - count).reshape(self.cables.shape)

    def nic_up(self, gpu: ArrayLike) -> NDArray[np.int64]:
        """Link of `fabric()` from a GPU to its leaf; the link down is the next id."""
        return 2 * np.asarray(gpu, np.int64)

    def leaf_up(self, leaf: ArrayLike, spine: ArrayLike, cable: ArrayLike = 0) -> NDArray[np.int64]:
        """Link of `fabric()` from a leaf to a spine over one of their cables; the link down is the next id."""
        first = self.first_cable[np.asarray(leaf), np.asarray(spine)]
        return np.asarray(2 * (self.gpus + first + np.asarray(cable, np.int64)), np.int64)

    def inside_up(self, gpu: ArrayLike) -> NDArray[np.int64]:
        """Link of `fabric()` from a GPU into its server, where servers hold several; the link back is the next id."""
        return 2 * (self.gpus + int(self.cables.sum()) + np.asarray(gpu, np.int64))

    def fabric(self) -> Fabric:
        """GPUs as hosts, for the simulator: NIC links, leaf-spine cables one by one, links inside servers.

        Nodes are GPUs, leafs, spines, and a switch inside each server that holds several GPUs.
        """
        draft = FabricDraft(self.name)
        inside = range(self.gpus_per_server)
        gpus = draft.add_hosts([f"{server}.{gpu}" for server in self.server_names for gpu in inside])
        leafs = draft.add_switches(self.leaf_names, level=1)
        spines = draft.add_switches(self.spine_names, level=2)
        draft.add_links(gpus, leafs[self.leaf_of_gpu], self.nic_bandwidth)
        leaf, spine = np.divmod(np.repeat(np.arange(self.cables.size), self.cables.ravel()), max(self.spines, 1))
        if len(leaf):
            draft.add_links(leafs[leaf], spines[spine], self.link_bandwidth)
        server = np.repeat(np.arange(self.servers, dtype=np.int32), self.gpus_per_server)
        if self.gpus_per_server > 1:
            switches = draft.add_switches([f"inside {server}" for server in self.server_names], level=1)
            draft.add_links(gpus, switches[server], self.server_bandwidth)
        return draft.freeze(server=server)

    @classmethod
    def of_leaf_spine(
        cls,
        shape: LeafSpine,
        gpus_per_server: int = 8,
        *,
        server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH,
        name: str | None = None,
    ) -> Plant:
        """The plant whose NICs are the hosts of a leaf-spine fabric, in servers of equal size."""
        if gpus_per_server < 1 or shape.hosts_per_leaf % gpus_per_server:
            raise FabricError(
                f"{shape.expression} has {shape.hosts_per_leaf} GPUs on a leaf, which are not whole servers of "
                f"{gpus_per_server}: give a divisor of {shape.hosts_per_leaf} as GPUs per server"
            )
        servers = shape.hosts_per_leaf // gpus_per_server
        return cls(
            name=name or shape.expression,
            gpus_per_server=gpus_per_server,
            server_leaf=np.repeat(np.arange(shape.leafs, dtype=np.int32), servers),
            cables=np.full((shape.leafs, shape.spines), shape.cables, np.int32),
            nic_bandwidth=shape.bandwidth,
            link_bandwidth=shape.uplink,
            server_bandwidth=server_bandwidth,
        )


def plant(
    expression: str,
    gpus_per_server: int = 8,
    *,
    bandwidth: float | None = None,
    server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH,
) -> Plant:
    """Read a plant as people write it: `leaf-spine:LEAFSxSPINESxGPUS_PER_LEAF[xCABLES]`."""
    shape = builder(expression, bandwidth)
    if not isinstance(shape, LeafSpine):
        raise FabricError(f"{expression!r} is no leaf-spine fabric: write leaf-spine:64x32x32 or read a topology file")
    return Plant.of_leaf_spine(shape, gpus_per_server, server_bandwidth=server_bandwidth)


def _check_names(findings: Findings, what: str, names: Sequence[str], count: int) -> None:
    if len(names) != count:
        findings.add(f"there are {len(names)} {what} names for {count} of them: name each once")
    for name in _twice(names):
        findings.add(f"{what} {name!r} is listed twice: remove one of the two")


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again = []
    for name in names:
        if name in seen and name not in again:
            again.append(name)
        seen.add(name)
    return again
