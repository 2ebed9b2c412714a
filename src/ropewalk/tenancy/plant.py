"""The plant: the cluster an operator has, as servers on leafs, cables from leafs to spines, and from spines to cores.

Two tiers are a plant without cores. With three, leafs and spines stand in pods (`tiers.py`). On rails the GPUs of a
server are on different leafs: leafs stand in units, and GPU i of every server of a unit is on its i-th leaf.

>>> small = plant("leaf-spine:4x8x8", gpus_per_server=4)
>>> small.gpus, small.servers, small.leafs, small.spines
(32, 8, 4, 8)
>>> tree = plant("fat-tree:4", gpus_per_server=2)
>>> tree.gpus, tree.leafs, tree.spines, tree.cores, tree.tiers.pods
(16, 8, 8, 4, 4)
>>> rails = plant("rails:8x4x4", gpus_per_server=4)
>>> rails.gpus, rails.units, rails.leaf_of_gpu[:6].tolist()
(32, 2, [0, 1, 2, 3, 0, 1])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric import Fabric, FatTree, LeafSpine
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH
from ropewalk.fabric.parameters import numbered
from ropewalk.fabric.rails import RAIL_ONLY
from ropewalk.tenancy.plant_checks import check_plant
from ropewalk.tenancy.plant_fabric import fabric_of
from ropewalk.tenancy.plant_names import RAILS, shape_of
from ropewalk.tenancy.plant_shapes import fat_tree, leaf_spine, rail_only
from ropewalk.tenancy.tiers import Tiers

DEFAULT_SERVER_BANDWIDTH = 125e9
"""1000 Gbps from a GPU to the others inside its server, in bytes/s."""


@dataclass(frozen=True, eq=False)
class Plant:
    """Servers of equal size on leafs; GPU g is on server g // gpus_per_server. Bandwidths are bytes/s, one way.

    Leafs may hold different numbers of servers and have cables to different spines. Names left out are numbered.
    """

    name: str
    gpus_per_server: int
    server_leaf: NDArray[np.int32]
    """Leaf of every server, on rails the first leaf of its unit; servers are sorted by leaf."""
    cables: NDArray[np.int32]
    """[leaf, spine]: parallel cables between the two, 0 where there are none."""
    nic_bandwidth: float = DEFAULT_BANDWIDTH
    link_bandwidth: float = DEFAULT_BANDWIDTH
    """Of one cable between switches."""
    server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH
    """Of a GPU towards the others inside its server."""
    server_names: tuple[str, ...] = ()
    leaf_names: tuple[str, ...] = ()
    spine_names: tuple[str, ...] = ()
    rails: int = 1
    """Leafs of a unit: 1, or one for each GPU of a server."""
    core_cables: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[spine, core]: parallel cables between the two; without cores there are two tiers."""
    core_names: tuple[str, ...] = ()

    tiers: Tiers = field(init=False, repr=False)
    """Pods and planes."""

    def __post_init__(self) -> None:
        if not np.size(self.core_cables):
            object.__setattr__(self, "core_cables", np.zeros((np.shape(self.cables)[-1], 0), np.int32))
        for name, dimensions in (("server_leaf", 1), ("cables", 2), ("core_cables", 2)):
            array = np.array(getattr(self, name), np.int32)
            if array.ndim != dimensions:
                raise FabricError(f"plant {self.name}: {name} has {array.ndim} dimensions: give {dimensions}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        for name, prefix, count in (
            ("server_names", "server", self.servers),
            ("leaf_names", "leaf", self.leafs),
            ("spine_names", "spine", self.spines),
            ("core_names", "core", self.cores),
        ):
            names = tuple(getattr(self, name))
            object.__setattr__(self, name, names or tuple(numbered(prefix, count)))
        object.__setattr__(self, "tiers", check_plant(self))

    @property
    def leafs(self) -> int:
        return int(self.cables.shape[0])

    @property
    def spines(self) -> int:
        return int(self.cables.shape[1])

    @property
    def cores(self) -> int:
        return int(self.core_cables.shape[1])

    @property
    def units(self) -> int:
        """Groups of leafs that share their servers: every leaf is one where there are no rails."""
        return self.leafs // self.rails

    def leafs_of(self, units: Iterable[int]) -> tuple[int, ...]:
        """The leafs of units: themselves where there are no rails."""
        return tuple(unit * self.rails + rail for unit in units for rail in range(self.rails))

    @property
    def unit_names(self) -> tuple[str, ...]:
        return self.leaf_names if self.rails == 1 else tuple(numbered("unit", self.units))

    @property
    def servers(self) -> int:
        return len(self.server_leaf)

    @property
    def gpus(self) -> int:
        return self.servers * self.gpus_per_server

    @cached_property
    def server_unit(self) -> NDArray[np.int32]:
        """Unit of every server: its leaf where there are no rails."""
        return (self.server_leaf // self.rails).astype(np.int32)

    @cached_property
    def servers_per_unit(self) -> NDArray[np.int64]:
        return np.bincount(self.server_unit, minlength=self.units).astype(np.int64)

    @cached_property
    def gpus_per_unit(self) -> NDArray[np.int64]:
        return self.servers_per_unit * self.gpus_per_server

    @cached_property
    def servers_per_leaf(self) -> NDArray[np.int64]:
        """Servers with a GPU on every leaf."""
        return np.repeat(self.servers_per_unit, self.rails)

    @cached_property
    def gpus_per_leaf(self) -> NDArray[np.int64]:
        return self.servers_per_leaf * (self.gpus_per_server // self.rails)

    @cached_property
    def first_server(self) -> NDArray[np.int64]:
        """Servers of unit i are `first_server[i]` to `first_server[i + 1]` - 1."""
        return np.concatenate([[0], np.cumsum(self.servers_per_unit)]).astype(np.int64)

    @cached_property
    def leaf_of_gpu(self) -> NDArray[np.int32]:
        rail = np.arange(self.gpus, dtype=np.int32) % np.int32(self.rails)
        return np.repeat(self.server_leaf, self.gpus_per_server) + rail

    @cached_property
    def place_on_leaf(self) -> NDArray[np.int64]:
        """Number of every GPU among those of its leaf."""
        first = np.repeat(self.first_server[:-1][self.server_unit], self.gpus_per_server) * self.gpus_per_server
        return np.asarray((np.arange(self.gpus) - first) // self.rails, np.int64)

    @cached_property
    def first_cable(self) -> NDArray[np.int64]:
        """[leaf, spine]: cables of all earlier pairs; cable c of the pair is number `first_cable + c`."""
        return _counted_before(self.cables)

    @cached_property
    def first_core_cable(self) -> NDArray[np.int64]:
        """[spine, core]: the same above spines; numbers go on behind those of all leaf-spine cables."""
        return self.leaf_cables + _counted_before(self.core_cables)

    @cached_property
    def leaf_cables(self) -> int:
        """Cables between leafs and spines."""
        return int(self.cables.sum(dtype=np.int64))

    @cached_property
    def switch_cables(self) -> int:
        """Cables between switches of all tiers."""
        return self.leaf_cables + int(self.core_cables.sum(dtype=np.int64))

    def nic_up(self, gpu: ArrayLike) -> NDArray[np.int64]:
        """Link of `fabric()` from a GPU to its leaf; the link down is the next id."""
        return 2 * np.asarray(gpu, np.int64)

    def leaf_up(self, leaf: ArrayLike, spine: ArrayLike, cable: ArrayLike = 0) -> NDArray[np.int64]:
        """Link of `fabric()` from a leaf to a spine over one of their cables; the link down is the next id."""
        first = self.first_cable[np.asarray(leaf), np.asarray(spine)]
        return np.asarray(2 * (self.gpus + first + np.asarray(cable, np.int64)), np.int64)

    def core_up(self, spine: ArrayLike, core: ArrayLike, cable: ArrayLike = 0) -> NDArray[np.int64]:
        """Link of `fabric()` from a spine to a core over one of their cables; the link down is the next id."""
        first = self.first_core_cable[np.asarray(spine), np.asarray(core)]
        return np.asarray(2 * (self.gpus + first + np.asarray(cable, np.int64)), np.int64)

    def inside_up(self, gpu: ArrayLike) -> NDArray[np.int64]:
        """Link of `fabric()` from a GPU into its server, where servers hold several; the link back is the next id."""
        return 2 * (self.gpus + self.switch_cables + np.asarray(gpu, np.int64))

    def fabric(self) -> Fabric:
        """GPUs as hosts, for the simulator: NIC links, cables between switches one by one, links inside servers.

        Nodes are GPUs, leafs, spines, cores, and a switch inside each server that holds several GPUs.
        """
        return fabric_of(self)

    @classmethod
    def of_leaf_spine(
        cls,
        shape: LeafSpine,
        gpus_per_server: int = 8,
        *,
        rails: bool = False,
        server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH,
    ) -> Plant:
        """The plant whose NICs are the hosts of a leaf-spine fabric, in servers of equal size.

        On rails as many consecutive leafs as a server has GPUs are a unit.
        """
        return cls(**leaf_spine(shape, gpus_per_server, rails=rails), server_bandwidth=server_bandwidth)

    @classmethod
    def of_fat_tree(
        cls, shape: FatTree, gpus_per_server: int = 8, *, server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH
    ) -> Plant:
        """The plant whose NICs are the hosts of a fat-tree: edge switches are leafs, aggregation switches spines."""
        return cls(**fat_tree(shape, gpus_per_server), server_bandwidth=server_bandwidth)


def plant(
    expression: str,
    gpus_per_server: int = 8,
    *,
    bandwidth: float | None = None,
    server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH,
) -> Plant:
    """Read a plant as people write it.

    Two tiers are `leaf-spine:LEAFSxSPINESxGPUS[xCABLES]`, by rail `rails:LEAFSxSPINESxSERVERS[xCABLES]` with as many
    leafs in a unit as a server has GPUs; three are `fat-tree:RADIX[,PODS[,UPLINKS]]`. `rail-only:UNITSxSERVERS` are
    rails without spines, so that units are islands.
    """
    family, _, numbers = expression.partition(":")
    if family == RAIL_ONLY:
        return Plant(
            **rail_only(expression, numbers, gpus_per_server, bandwidth or DEFAULT_BANDWIDTH),
            server_bandwidth=server_bandwidth,
        )
    shape = shape_of(expression, bandwidth)
    if isinstance(shape, LeafSpine):
        return Plant.of_leaf_spine(shape, gpus_per_server, rails=family == RAILS, server_bandwidth=server_bandwidth)
    return Plant.of_fat_tree(shape, gpus_per_server, server_bandwidth=server_bandwidth)


def _counted_before(cables: NDArray[np.int32]) -> NDArray[np.int64]:
    count = cables.ravel().astype(np.int64)
    return (np.cumsum(count) - count).reshape(cables.shape)
