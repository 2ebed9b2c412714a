"""SelectPermutations: which of a group's regular rings to wire, by geometric rules.

Jumps that grow geometrically keep ways short, as the fingers of Chord do. The rules here are those that were published;
`circulants.best_rings` searches and never does worse. All of them return different rings only: where a group has fewer
(2, 3, 4 and 6 members have one duplex ring, 8 and 12 have two), fewer jumps come back and the caller keeps the ports.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.totient import one_for_each_cable, totient_jumps
from ropewalk.errors import StrategyError


def select_jumps(size: int, count: int, candidates: Sequence[int], *, duplex: bool) -> tuple[int, ...]:
    """The chained geometric rule of SelectPermutations (Wang et al., TopoOpt, NSDI 2023), in the order of choice.

    The first jump is the smallest candidate; each next one is the unused candidate nearest to the one before times
    x, where x is the count-th root of the group's size. Of two equally near ones the smaller is taken: the paper leaves
    it open. Distances are compared in whole numbers, so that no rounding of a root decides.

    >>> select_jumps(128, 4, range(1, 128, 2), duplex=True)
    (1, 3, 11, 37)
    >>> select_jumps(12, 4, (1, 5, 7, 11), duplex=False)
    (1, 5, 11, 7)
    """
    unused = _checked(size, count, candidates, duplex)
    count = min(count, len(unused))
    if count == 0:
        return ()
    chosen = [unused.pop(0)]
    while len(chosen) < count:
        chosen.append(unused.pop(_nearest(unused, chosen[-1], size, count)))
    return tuple(chosen)


def round_up_jumps(size: int, count: int, candidates: Sequence[int], *, duplex: bool) -> tuple[int, ...]:
    """The rule of the code that was published with the paper, kept to compare with the wirings it made.

    Targets are powers of a fixed ratio, the count-th root (simplex: one less) of the largest jump, and each takes the
    smallest unused candidate that is not below it. Where none is left, the largest unused one is taken.

    >>> round_up_jumps(128, 4, range(1, 128, 2), duplex=True)
    (1, 5, 13, 39)
    """
    # The largest directed jump of a ring is size - 1, whether or not opposites are listed.
    unused = _checked(size, count, candidates, duplex)
    count = min(count, len(unused))
    root = count if duplex else count - 1
    chosen: list[int] = []
    for power in range(count):
        # candidate >= (size - 1)^(power/root), without taking the root
        enough = [at for at, jump in enumerate(unused) if jump**root >= (size - 1) ** power]
        chosen.append(unused.pop(enough[0] if enough else -1))
    return tuple(chosen)


def paper_jumps(
    size: int, count: int, *, duplex: bool, weight: NDArray[np.float64] | None = None, prime_only: bool = False
) -> tuple[int, ...]:
    """`select_jumps` among all rings of the group; the rule does not look at the weight."""
    return select_jumps(size, count, totient_jumps(size, prime_only=prime_only, duplex=duplex), duplex=duplex)


def _checked(size: int, count: int, candidates: Sequence[int], duplex: bool) -> list[int]:
    if count < 0:
        raise StrategyError(f"{count} rings for a group of {size}: give 0 or more")
    strange = [jump for jump in candidates if not 0 < jump < size]
    if strange:
        raise StrategyError(f"jump {strange[0]} leaves a group of {size}: give jumps from 1 to {size - 1}")
    once = one_for_each_cable(size, tuple(candidates)) if duplex else candidates
    return sorted(set(once))


def _nearest(unused: list[int], last: int, size: int, count: int) -> int:
    """Where the candidate nearest to last * size^(1/count) stands: all compared as count-th powers."""
    above = bisect_right(unused, last**count * size, key=lambda jump: jump**count)
    if above == 0:
        return 0
    if above == len(unused):
        return above - 1
    middle = unused[above - 1] + unused[above]
    return above - 1 if (2 * last) ** count * size <= middle**count else above
