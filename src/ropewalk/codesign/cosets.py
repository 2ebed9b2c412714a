"""Which sums sit on cosets: groups of every (n/k)-th server, the only ones over which regular rings are shared.

All cosets of one size get their rings at once, since a ring of jump p over every coset is one jump of p * n/k over
all servers. So sums are counted by the size of their group, and a group on other servers is refused: rings of its own
would cost its servers ports that the others keep, and the topology would no longer look alike from every server. Most
such groups only need other names: `coset_labels` renumbers servers so that groups that nest (blocks of neighbours,
say) become cosets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.errors import Findings, StrategyError


def is_coset(servers: int, group: Sequence[int]) -> bool:
    """Whether a group is every (servers/k)-th server, in any order.

    >>> is_coset(12, (1, 4, 7, 10)), is_coset(12, (0, 1, 2, 3))
    (True, False)
    """
    size = len(group)
    if size == 0 or servers % size:
        return False
    stride = servers // size
    return sorted(group) == list(range(min(group) % stride, servers, stride))


def wire_bytes_by_size(demands: Demands) -> dict[int, float]:
    """Bytes on the wire of all sums of each group size, the largest first (equal ones: the larger group first)."""
    findings = Findings(StrategyError, "sums over groups")
    totals: dict[int, float] = {}
    for group in demands.sums:
        size = len(group.servers)
        if not is_coset(demands.servers, group.servers):
            findings.add(_refusal(demands.servers, group))
        totals[size] = totals.get(size, 0.0) + group.wire_bytes
    findings.raise_if_any()
    return dict(sorted(totals.items(), key=lambda item: (-item[1], -item[0])))


def _refusal(servers: int, group: GroupSum) -> str:
    shown = ", ".join(map(str, group.servers[:6])) + (", …" if len(group.servers) > 6 else "")
    size = len(group.servers)
    if servers % size:
        return (
            f"the {size} servers {shown} are no coset, since {size} does not divide {servers}: "
            f"sum over a number of servers that divides {servers}"
        )
    return (
        f"the {size} servers {shown} are no coset: seat them on every {servers // size}-th of the {servers} servers, "
        f"or renumber the servers with coset_labels"
    )


def coset_labels(demands: Demands) -> tuple[int, ...]:
    """New numbers for the servers under which all sums are over cosets: labels[old] = new.

    It exists where groups nest (two either share no server or one contains the other) and each size divides the next.

    >>> blocks = (GroupSum((0, 1, 2, 3), 1.0), GroupSum((4, 5, 6, 7), 1.0), GroupSum((4, 5), 1.0))
    >>> coset_labels(Demands(8, blocks, np.zeros((8, 8))))
    (0, 2, 4, 6, 1, 5, 3, 7)
    """
    groups = sorted({frozenset(group.servers) for group in demands.sums}, key=lambda group: (-len(group), min(group)))
    labels = [0] * demands.servers
    _spread(sorted(range(demands.servers)), groups, range(demands.servers), labels)
    if not all(is_coset(demands.servers, [labels[server] for server in group]) for group in groups):
        raise StrategyError(
            "no numbering makes cosets of all groups: let groups contain each other or share no server, "
            "and let every size divide the next larger one and the number of servers"
        )
    return tuple(labels)


def _spread(servers: list[int], groups: list[frozenset[int]], places: range, labels: list[int]) -> None:
    """Give `servers` the labels of an arithmetic progression so that groups among them get progressions in it."""
    inside = [group for group in groups if group <= set(servers) and len(group) < len(servers)]
    if not inside or len(servers) % len(inside[0]):
        for server, place in zip(servers, places, strict=True):
            labels[server] = place
        return
    size = len(inside[0])
    # Servers of one group stand together, larger groups first, so that cutting into blocks cuts no group.
    ordered = list(dict.fromkeys([server for group in inside for server in sorted(group)] + servers))
    parts = len(servers) // size
    for part in range(parts):
        _spread(ordered[part * size : (part + 1) * size], inside, places[part::parts], labels)


def relabelled(demands: Demands, labels: Sequence[int]) -> Demands:
    """The same demands with server a called labels[a]."""
    if sorted(labels) != list(range(demands.servers)):
        raise StrategyError(f"the labels are no renumbering of {demands.servers} servers: use each number once")
    sums = tuple(
        GroupSum(tuple(labels[server] for server in group.servers), group.size_bytes) for group in demands.sums
    )
    pairs = np.zeros_like(demands.pairs)
    pairs[np.ix_(labels, labels)] = demands.pairs
    return Demands(demands.servers, sums, pairs)
