"""How few rounds a collective can take: what a rank can reach in so many hops bounds how many ranks there are.

A broadcast or all-gather needs at least these rounds, and so does an all-reduce; as a reduce-scatter and an all-gather
it needs twice as many.
"""

from __future__ import annotations

from ropewalk.errors import ProgramError


def directed_moore_rounds(ranks: int, degree: int) -> int:
    """Rounds in which a rank can reach all others over links of out-degree `degree`: N <= 1 + d + d² + … (Moore).

    >>> directed_moore_rounds(12, 2), directed_moore_rounds(15, 2), directed_moore_rounds(16, 2)
    (3, 3, 4)
    """
    _check(ranks, degree)
    rounds, reached, newest = 0, 1, 1
    while reached < ranks:
        newest *= degree
        reached += newest
        rounds += 1
    return rounds


def undirected_moore_rounds(ranks: int, degree: int) -> int:
    """The same where links go both ways, so that one of them leads back: N <= 1 + d + d(d-1) + …

    >>> undirected_moore_rounds(10, 3), undirected_moore_rounds(8, 2)
    (2, 4)
    """
    _check(ranks, degree)
    if degree == 1 and ranks > 2:
        raise ProgramError(f"{ranks} ranks with one link each are not connected: give a degree of at least 2")
    rounds, reached, newest = 0, 1, degree
    while reached < ranks:
        reached += newest
        newest *= degree - 1
        rounds += 1
    return rounds


def ported_rounds(ranks: int, ports: int = 1) -> int:
    """Rounds of a broadcast where everybody reaches everybody but sends to `ports` others at a time: log N to base k+1.

    >>> ported_rounds(8), ported_rounds(9), ported_rounds(9, ports=2)
    (3, 4, 2)
    """
    _check(ranks, ports)
    rounds, reached = 0, 1
    while reached < ranks:
        reached *= ports + 1
        rounds += 1
    return rounds


def _check(ranks: int, degree: int) -> None:
    if ranks < 1 or degree < 1:
        raise ProgramError(f"{ranks} ranks that reach {degree} others at a time: give at least 1 of each")
