"""Which sums sit on cosets: groups of every (n/k)-th server, the only ones over which regular rings are shared.

All cosets of one size get their rings at once, since a ring of jump p over every coset is one jump of p * n/k over
all servers. So sums are counted by the size of their group, and a group on other servers is refused: rings of its own
would cost its servers ports that the others keep, and the topology would no longer look alike from every server.
"""

from __future__ import annotations

from collections.abc import Sequence

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
            f"the {size} servers {shown} are not a coset, since {size} does not divide {servers}: "
            f"use a number of servers that divides {servers}"
        )
    return (
        f"the {size} servers {shown} are not a coset: place them on every {servers // size}-th of the {servers} servers"
    )
