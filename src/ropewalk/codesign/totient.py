"""TotientPerms: the regular rings of a group, one for every jump that is coprime to its size.

Number the k members of a group 0 … k-1 and let member i send to member i + p (mod k). That is one ring over all members
exactly when gcd(p, k) = 1, so a group has phi(k) regular rings, phi being Euler's totient. All of them carry an
all-reduce equally well: which of them to wire is free, and chosen so that other traffic has short ways.

A duplex cable has a link per direction, so p and k - p are the same cables: phi(k)/2 choices (one for k = 2). A
simplex cable sends in one direction, so they differ. A duplex ring takes two ports of every server,
a simplex ring a sending and a receiving one.
"""

from __future__ import annotations

import math

from ropewalk.errors import StrategyError


def totient_jumps(size: int, *, prime_only: bool = False, duplex: bool) -> tuple[int, ...]:
    """Jumps of all regular rings of a group of `size`, ascending (Wang et al., TopoOpt, NSDI 2023, TotientPerms).

    Duplex rings are listed once, by the shorter of their two jumps. `prime_only` keeps 1 and the prime jumps (a
    duplex ring if one of its two is such): of the order of k/ln k of them, a restriction for scale. A group of one
    has no ring.

    >>> totient_jumps(12, duplex=False)
    (1, 5, 7, 11)
    >>> totient_jumps(12, duplex=True)
    (1, 5)
    >>> totient_jumps(16, prime_only=True, duplex=False)
    (1, 3, 5, 7, 11, 13)
    """
    if size < 1:
        raise StrategyError(f"a group of {size} servers has no rings: give at least one server")
    jumps = [jump for jump in range(1, size) if math.gcd(jump, size) == 1]
    if prime_only:
        allowed = _one_and_primes(size)
        jumps = [jump for jump in jumps if allowed[jump] or (duplex and allowed[size - jump])]
    return one_for_each_cable(size, jumps) if duplex else tuple(jumps)


def one_for_each_cable(size: int, jumps: list[int] | tuple[int, ...]) -> tuple[int, ...]:
    """Jumps with opposites taken together: the shorter of p and size - p, each once, in order of first mention.

    >>> one_for_each_cable(12, [1, 7, 5, 11])
    (1, 5)
    """
    return tuple(dict.fromkeys(min(jump % size, -jump % size) for jump in jumps))


def directed_jumps(size: int, jumps: tuple[int, ...], *, duplex: bool) -> tuple[int, ...]:
    """The directed rings that cables with these jumps make: each jump and, where duplex, its opposite.

    A ring that is laid twice is named twice: it carries twice the bytes of one laid once.

    >>> directed_jumps(12, (1, 5), duplex=True)
    (1, 5, 11, 7)
    >>> directed_jumps(2, (1,), duplex=True)
    (1,)
    >>> directed_jumps(4, (1, 1), duplex=True)
    (1, 1, 3, 3)
    """
    return (*jumps, *(size - jump for jump in jumps if duplex and 2 * jump != size))


def _one_and_primes(below: int) -> list[bool]:
    """For every number below a bound whether it is 1 or a prime (sieve of Eratosthenes)."""
    keep = [False, *[True] * (below - 1)]
    for number in range(2, math.isqrt(below) + 1):
        if keep[number]:
            keep[number * number :: number] = [False] * len(range(number * number, below, number))
    return keep
