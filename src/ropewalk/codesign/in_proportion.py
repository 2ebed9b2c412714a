"""Cables in proportion to bytes: every pair of servers that send to each other is joined, busy pairs by more cables.

Rings over groups serve all-reduces of many servers. Where a step sends along a chain of stages, and groups are small
and cross each other, what counts is that no cable has much more to do than others. So servers are first joined to
one network, heaviest pairs first; then every further cable goes to the pair whose cables are the busiest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.spare_ports import lay_shortcuts


def lay_in_proportion(draft: CableDraft, demand: NDArray[np.float64]) -> bool:
    """Lay cables for these bytes between servers; False where the ports cannot join all servers like this.

    >>> draft = CableDraft(3, 4, duplex=True)
    >>> lay_in_proportion(draft, np.array([[0, 6.0, 0], [0, 0, 2.0], [0, 0, 0]])), draft.cables()
    (True, ((0, 1, 3), (0, 2, 1), (1, 2, 1)))
    """
    worth = demand + demand.T if draft.duplex else demand.copy()
    np.fill_diagonal(worth, 0.0)
    _join(draft, worth)
    while (busiest := _busiest(draft, worth)) is not None:
        _lay(draft, *busiest)
    lay_shortcuts(draft, demand)
    return bool((draft.hops() < draft.servers).all())


def _join(draft: CableDraft, worth: NDArray[np.float64]) -> None:
    """One cable for each pair that brings parts of the network together, heaviest first, then pairs without bytes.

    A part that is joined keeps a port for the next as long as there are further parts.
    """
    part = np.arange(draft.servers)
    a, b = np.nonzero(~np.eye(draft.servers, dtype=bool))
    for at in np.lexsort((b, a, -worth[a, b])).tolist():
        one, other = int(a[at]), int(b[at])
        if part[one] == part[other] or not _free(draft, one, other):
            continue
        joined = (part == part[one]) | (part == part[other])
        if not joined.all() and draft.sending[joined].sum() <= (2 if draft.duplex else 1):
            continue
        _lay(draft, one, other)
        part[joined] = part[one]


def _busiest(draft: CableDraft, worth: NDArray[np.float64]) -> tuple[int, int] | None:
    """The pair with free ports whose cables have the most to carry; ties go to the lower servers."""
    free = (draft.sending > 0)[:, None] & (draft.receiving > 0)
    each = np.where(free, worth / np.maximum(draft.count, 0.5), 0.0)
    at = int(each.argmax())
    one, other = divmod(at, draft.servers)
    return (one, other) if each[one, other] > 0 else None


def _free(draft: CableDraft, one: int, other: int) -> bool:
    return bool(draft.sending[one] > 0 and draft.receiving[other] > 0)


def _lay(draft: CableDraft, one: int, other: int) -> None:
    draft.add(np.array([one]), np.array([other]))
