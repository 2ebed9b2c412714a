"""The member of each family that has a given number of hosts, where there is one.

Each function takes a number of hosts and answers a builder, or None where the family has no such size. They prefer the
shape an engineer would draw: the full fat-tree, two dimensions over three, racks as wide as they are many.
"""

from __future__ import annotations

import math

from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.dragonfly import Dragonfly
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.random_regular import RandomRegular
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Mesh, Ring, Torus


def sized_fat_tree(hosts: int) -> FatTree | None:
    """The full tree of radix r has r^3/4 hosts; with r/2 pods it has (r/2)^3."""
    full = exact_root(4 * hosts, 3)
    if full is not None and full >= 2 and full % 2 == 0:
        return FatTree(full)
    half = exact_root(hosts, 3)
    return FatTree(2 * half, half) if half is not None and half >= 2 else None


def sized_leaf_spine(hosts: int) -> LeafSpine | None:
    """Non-blocking, with as many spines as hosts on a leaf and about as many leafs."""
    per_leaf = widest_divisor(hosts)
    return LeafSpine(hosts // per_leaf, per_leaf, per_leaf) if per_leaf >= 2 else None


def sized_bcube(hosts: int) -> BCube | None:
    """n^k hosts, with the fewest levels from two on."""
    power = as_power(hosts, smallest_base=2)
    return BCube(*power) if power else None


def sized_torus(hosts: int) -> Torus | None:
    shape = grid_shape(hosts)
    return Torus(shape) if shape else None


def sized_mesh(hosts: int) -> Mesh | None:
    shape = grid_shape(hosts)
    return Mesh(shape) if shape else None


def sized_ring(hosts: int) -> Ring | None:
    return Ring(hosts) if hosts >= 2 else None


def sized_hypercube(hosts: int) -> Hypercube | None:
    return Hypercube(hosts.bit_length() - 1) if hosts >= 2 and hosts.bit_count() == 1 else None


def sized_dragonfly(hosts: int) -> Dragonfly | None:
    """Balanced (routers = 2 hosts per router = 2 global links), with the smallest routers whose groups suffice."""
    for width in range(1, math.isqrt(hosts) + 1):
        groups, rest = divmod(hosts, 2 * width**2)
        if rest == 0 and 2 <= groups <= 2 * width**2 + 1:
            return Dragonfly(groups, 2 * width, width, width)
    return None


def sized_switch(hosts: int) -> IdealSwitch | None:
    return IdealSwitch(hosts) if hosts >= 2 else None


def sized_random_regular(hosts: int) -> RandomRegular | None:
    """Four neighbours each, as in a two-dimensional torus."""
    return RandomRegular(hosts, 4) if hosts >= 5 else None


def sized_circulant(hosts: int) -> Circulant | None:
    """Strides 1 and about sqrt(N), which keeps paths near sqrt(N) long."""
    return Circulant(hosts, (1, max(2, math.isqrt(hosts)))) if hosts >= 5 else None


def sized_dgx(hosts: int) -> Dgx | None:
    return Dgx(hosts // 8) if hosts >= 8 and hosts % 8 == 0 else None


def exact_root(number: int, degree: int) -> int | None:
    """The whole number whose power it is, or None."""
    root = round(number ** (1 / degree))
    return next((near for near in (root - 1, root, root + 1) if near > 0 and near**degree == number), None)


def as_power(number: int, smallest_base: int) -> tuple[int, int] | None:
    """(n, k) with n^k the number and the smallest k >= 2, or None."""
    for exponent in range(2, number.bit_length() + 1):
        base = exact_root(number, exponent)
        if base is not None and base >= smallest_base:
            return base, exponent
    return None


def widest_divisor(number: int) -> int:
    """The largest divisor not above the square root."""
    return next(divisor for divisor in range(math.isqrt(number), 0, -1) if number % divisor == 0)


def grid_shape(hosts: int) -> tuple[int, ...] | None:
    """Equal sides where that is possible with sides of 3 or more, otherwise the most square rectangle."""
    power = as_power(hosts, smallest_base=3)
    if power:
        return (power[0],) * power[1]
    side = widest_divisor(hosts)
    return (side, hosts // side) if side >= 2 else None
