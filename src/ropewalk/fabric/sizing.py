"""The member of each family that has a given number of hosts, where there is one.

Each function takes a number of hosts and answers a builder, or None where the family has no such size. They prefer the
shape an engineer would draw: the full fat-tree, two dimensions over three, racks as wide as they are many. Trees can
be tapered: with the ratio of what hosts send to what their switches pass up, 1 where nothing blocks.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ropewalk.errors import FabricError
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


def tapered_fat_tree(hosts: int, ratio: Fraction) -> FatTree | None:
    """The smallest radix whose pods, two or more of them, hold exactly these hosts; the ratio is a whole number.

    >>> tapered_fat_tree(32, Fraction(2)).expression
    'fat-tree:8,2,2'
    """
    if ratio.denominator != 1:
        raise FabricError(
            f"fat-tree:{ratio.numerator}to{ratio.denominator}: a fat-tree has a whole number of hosts per uplink: "
            f"write fat-tree:{math.ceil(ratio)}to1"
        )
    step = int(ratio)
    for half in range(step, math.isqrt(hosts // 2) + 1, step):
        pods, rest = divmod(hosts, half * half)
        if rest == 0 and 2 <= pods <= 2 * half:
            return FatTree(2 * half, pods, half // step)
    return None


def sized_leaf_spine(hosts: int) -> LeafSpine | None:
    """Non-blocking, with as many spines as hosts on a leaf and about as many leafs."""
    per_leaf = widest_divisor(hosts)
    return LeafSpine(hosts // per_leaf, per_leaf, per_leaf) if per_leaf >= 2 else None


def tapered_leaf_spine(hosts: int, ratio: Fraction) -> LeafSpine | None:
    """About as many leafs as hosts on a leaf, and as many spines as the ratio leaves.

    >>> tapered_leaf_spine(64, Fraction(4)).expression
    'leaf-spine:8x2x8'
    """
    wide = [each for each in divisors(hosts) if each >= 2 and each < hosts and (each / ratio).denominator == 1]
    if not wide:
        return None
    # As widest_divisor: the widest leaf that is not wider than there are leafs, else the narrowest.
    per_leaf = max((each for each in wide if each * each <= hosts), default=min(wide))
    return LeafSpine(hosts // per_leaf, int(per_leaf / ratio), per_leaf)


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


def cubic_bcube(hosts: int, levels: int) -> BCube | None:
    """The one with so many levels.

    >>> cubic_bcube(64, 3).expression
    'bcube:4,3'
    """
    ports = exact_root(hosts, levels)
    return BCube(ports, levels) if ports is not None and ports >= 2 else None


def cubic_torus(hosts: int, axes: int) -> Torus | None:
    side = exact_root(hosts, axes)
    return Torus((side,) * axes) if side is not None and side >= 2 else None


def cubic_mesh(hosts: int, axes: int) -> Mesh | None:
    side = exact_root(hosts, axes)
    return Mesh((side,) * axes) if side is not None and side >= 2 else None


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


def whole_roots(number: int) -> dict[int, int]:
    """Every k for which a whole n of 2 or more has n^k = number, with its n.

    >>> whole_roots(64)
    {1: 64, 2: 8, 3: 4, 6: 2}
    """
    roots = {degree: exact_root(number, degree) for degree in range(1, number.bit_length())}
    return {degree: root for degree, root in roots.items() if root is not None and root >= 2}


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


def divisors(number: int) -> list[int]:
    """All whole numbers that divide it, ascending."""
    low = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return low + [number // divisor for divisor in reversed(low) if divisor * divisor != number]


def grid_shape(hosts: int) -> tuple[int, ...] | None:
    """Equal sides where that is possible with sides of 3 or more, otherwise the most square rectangle."""
    power = as_power(hosts, smallest_base=3)
    if power:
        return (power[0],) * power[1]
    side = widest_divisor(hosts)
    return (side, hosts // side) if side >= 2 else None
