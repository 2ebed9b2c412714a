"""Every family of fabrics that an expression can name: how it is written, sized and made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ropewalk.choices import Choice, Choices
from ropewalk.errors import FabricError
from ropewalk.fabric import sizing
from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.dgx import NIC_H100, NVLINK_H100, Dgx
from ropewalk.fabric.dragonfly import Dragonfly
from ropewalk.fabric.fabric import Builder
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.in_server import NVLINK_P100, CubeMesh, PcieTree
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.random_regular import RandomRegular
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Mesh, Ring, Torus

MANY = 64
"""Numbers behind a colon at most, for families that take any number of them."""


@dataclass(frozen=True, kw_only=True)
class Family(Choice[Callable[..., Builder]]):
    """How one family of fabrics is written and sized; `where` is the rule that its numbers of hosts follow."""

    usage: str
    """Its numbers in order, optional ones in brackets."""
    example: str
    sized: Callable[[int], Builder | None]
    """The member with so many hosts, or None."""
    numbers: tuple[int, int] = (1, 1)
    """Fewest and most numbers behind the colon."""
    tapered: Callable[[int, Fraction], Builder | None] | None = None
    """The same with so much oversubscription (`leaf-spine:2to1`), where the family has tiers that can be narrowed."""
    cubic: Callable[[int, int], Builder | None] | None = None
    """The member with so many hosts and k equal axes, where the family has axes (a BCube's are its levels)."""

    def facts(self) -> dict[str, str]:
        return {"example": self.example, "hosts": self.where}

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"usage": f"{self.name}:{self.usage}"}


def family(
    name: str, make: Callable[..., Builder], about: str, *, usage: str, example: str, sizes: str,
    sized: Callable[[int], Builder | None], numbers: tuple[int, int] = (1, 1),
    tapered: Callable[[int, Fraction], Builder | None] | None = None,
    cubic: Callable[[int, int], Builder | None] | None = None,
) -> Family:  # fmt: skip
    """A family, which applies to the numbers of hosts that one of its members has."""

    def has_such_a_size(hosts: int) -> str | None:
        return None if hosts >= 2 and sized(hosts) is not None else f"has no member of {hosts} hosts ({sizes})"

    return Family(
        name, make, about, has_such_a_size, sizes, usage=usage, example=example, sized=sized, numbers=numbers,
        tapered=tapered, cubic=cubic,
    )  # fmt: skip


def _h100(servers: int, *layout: int) -> Dgx:
    return dataclasses.replace(Dgx(servers, *layout), nvlink_bandwidth=NVLINK_H100, bandwidth=NIC_H100)


def _sized_h100(hosts: int) -> Dgx | None:
    found = sizing.sized_dgx(hosts)
    return _h100(found.servers) if found else None


def _p100(gpus: int) -> CubeMesh:
    return CubeMesh(gpus, NVLINK_P100, twice=False)


def _cube_mesh(hosts: int) -> CubeMesh | None:
    return CubeMesh(hosts) if 2 <= hosts <= 8 else None


def _pcie(hosts: int) -> PcieTree | None:
    return PcieTree(hosts) if hosts >= 8 and hosts % 8 == 0 else None


_UP_TO_EIGHT = "2 to 8"
_SERVERS, _EIGHTS = "SERVERS[,GPUS[,RAILS[,SPINES]]]", "multiples of 8"
_TWO_OR_MORE, _FIVE_OR_MORE, _SIDES = "2 or more", "5 or more", "products of sides of at least 2"

FAMILIES = Choices(
    "fabric family",
    (
        family("fat-tree", FatTree, "three levels of equal switches with full bisection",
               usage="RADIX[,PODS[,AGGREGATIONS]]", example="fat-tree:8",
               sizes="radix^3/4, or radix^3/8 with half of the pods", sized=sizing.sized_fat_tree, numbers=(1, 3),
               tapered=sizing.tapered_fat_tree),
        family("leaf-spine", LeafSpine, "leaf switches with hosts, each connected to every spine switch",
               usage="LEAFSxSPINESxHOSTS_PER_LEAF[xCABLES]", example="leaf-spine:16x8x4",
               sizes="leafs times hosts per leaf, both at least 2", sized=sizing.sized_leaf_spine, numbers=(3, 4),
               tapered=sizing.tapered_leaf_spine),
        family("bcube", BCube, "hosts with a port per level, and one level of switches per digit of a host's number",
               usage="PORTS,LEVELS", example="bcube:4,2", sizes="ports^levels, at least 2 levels",
               sized=sizing.sized_bcube, numbers=(2, 2), cubic=sizing.cubic_bcube),
        family("torus", lambda *sides: Torus(sides), "a grid of hosts with wrap-around links",
               usage="SIDExSIDE…", example="torus:8x8", sizes=_SIDES, sized=sizing.sized_torus, numbers=(1, MANY),
               cubic=sizing.cubic_torus),
        family("mesh", lambda *sides: Mesh(sides), "a grid of hosts without wrap-around links",
               usage="SIDExSIDE…", example="mesh:4x4", sizes=_SIDES, sized=sizing.sized_mesh, numbers=(1, MANY),
               cubic=sizing.cubic_mesh),
        family("ring", Ring, "every host connected to the next, the last to the first",
               usage="HOSTS", example="ring:8", sizes=_TWO_OR_MORE, sized=sizing.sized_ring),
        family("hypercube", Hypercube, "hosts connected where their numbers differ in one bit",
               usage="DIMENSIONS", example="hypercube:4", sizes="powers of 2", sized=sizing.sized_hypercube),
        family("dragonfly", Dragonfly, "groups of fully connected routers, with links between groups",
               usage="GROUPS,ROUTERS,HOSTS_PER_ROUTER,GLOBAL_LINKS", example="dragonfly:9,4,2,2",
               sizes="groups of 2 w^2 hosts, 2 to 2 w^2 + 1 groups", sized=sizing.sized_dragonfly, numbers=(4, 4)),
        family("switch", IdealSwitch, "one switch with a port for every host",
               usage="HOSTS", example="switch:64", sizes=_TWO_OR_MORE, sized=sizing.sized_switch),
        family("random-regular", RandomRegular, "hosts connected at random, with equally many links (Jellyfish)",
               usage="HOSTS,DEGREE[,SEED]", example="random-regular:64,4", sizes=_FIVE_OR_MORE,
               sized=sizing.sized_random_regular, numbers=(2, 3)),
        family("circulant", lambda hosts, *strides: Circulant(hosts, strides), "rings of several strides over all "
               "hosts", usage="HOSTS,STRIDE[,STRIDE…]", example="circulant:16,1,3", sizes=_FIVE_OR_MORE,
               sized=sizing.sized_circulant, numbers=(2, MANY)),
        family("dgx", Dgx, "servers of eight A100s on NVSwitch, rails of NICs between servers", example="dgx:2",
               sized=sizing.sized_dgx, numbers=(1, 4), usage=_SERVERS, sizes=_EIGHTS),
        family("dgx-a100", Dgx, "the same as dgx", example="dgx-a100:2", sized=sizing.sized_dgx, numbers=(1, 4),
               usage=_SERVERS, sizes=_EIGHTS),
        family("dgx-h100", _h100, "servers of eight H100s on NVSwitch, rails of NICs between servers",
               example="dgx-h100:4", sized=_sized_h100, numbers=(1, 4), usage=_SERVERS, sizes=_EIGHTS),
        family("dgx-1v", CubeMesh, "one server of V100s whose NVLinks are a hybrid cube mesh, without a switch",
               usage="GPUS", example="dgx-1v:8", sizes=_UP_TO_EIGHT, sized=_cube_mesh),
        family("dgx-1p", _p100, "the same of P100s, which have four NVLinks", usage="GPUS", example="dgx-1p:8",
               sizes=_UP_TO_EIGHT, sized=lambda hosts: None if _cube_mesh(hosts) is None else _p100(hosts)),
        family("pcie", PcieTree, "one server whose GPUs are on switches of PCI Express below two CPUs",
               usage="GPUS[,GPUS_PER_SWITCH[,CPUS]]", example="pcie:8", sizes=_EIGHTS, sized=_pcie, numbers=(1, 3)),
    ),
    error=FabricError,
    plural="fabrics",
)  # fmt: skip
"""All families. Adding one is a file with its builder and a line here."""
