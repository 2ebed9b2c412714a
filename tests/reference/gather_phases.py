"""All-gathers against a forward pass alone: groups as DeAR makes them, the best of all, and one launch that streams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def gather_phase_s(gather_s: ArrayLike, forward_s: ArrayLike, ends: Sequence[int], start_up_s: float) -> float:
    """All-gathers against a forward pass alone: tensor i is gathered in `gather_s[i]` and used for `forward_s[i]`.

    Groups end behind the positions `ends`; each starts up once and arrives as a whole.

    >>> gather_phase_s([1] * 4, [1] * 4, [1, 3, 4], 1)
    8.0
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    sent = computed = 0.0
    first = 0
    for end in ends:
        sent += start_up_s + float(gather[first:end].sum())
        computed = max(computed, sent) + float(forward[first:end].sum())
        first = end
    return computed


def best_gather_phase(gather_s: ArrayLike, forward_s: ArrayLike, start_up_s: float) -> tuple[float, tuple[int, ...]]:
    """The best groups of such a phase, exactly: seconds, and behind which tensors the groups end.

    How long the network has been busy after j tensors in k groups does not depend on which groups they were, so a
    dynamic program over (j, k) is exact. Of equals the fewest groups.

    >>> best_gather_phase([1] * 4, [1] * 4, 0.5)
    (6.5, (2, 3, 4))
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    count = len(gather)
    sent = np.concatenate([[0.0], np.cumsum(gather)])
    used = np.concatenate([[0.0], np.cumsum(forward)])
    best = np.full((count + 1, count + 1), np.inf)
    best[0, 0] = 0.0
    came_from = np.zeros((count + 1, count + 1), np.int64)
    for groups in range(1, count + 1):
        for last in range(groups, count + 1):
            arrives = groups * start_up_s + sent[last]
            ways = np.maximum(best[:last, groups - 1], arrives) + used[last] - used[:last]
            came_from[last, groups] = int(np.argmin(ways))
            best[last, groups] = ways[came_from[last, groups]]
    groups = int(np.argmin(best[count]))
    ends, last = [], count
    for number in range(groups, 0, -1):
        ends.append(last)
        last = int(came_from[last, number])
    return float(best[count, groups]), tuple(ends[::-1])


def streamed_gather_phase_s(gather_s: ArrayLike, forward_s: ArrayLike, start_up_s: float) -> float:
    """The same phase with all tensors in one launch in which each arrives on its own: one start-up, no waiting.

    >>> streamed_gather_phase_s([1] * 4, [1] * 4, 0.5)
    5.5
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    arrival = start_up_s + np.cumsum(gather)
    behind = np.cumsum(forward[::-1])[::-1]
    return float((arrival + behind).max())
