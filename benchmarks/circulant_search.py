"""How long the search for jumps takes, what it gains over the geometric rule, and how long routing all pairs takes."""

from __future__ import annotations

from functools import partial

import numpy as np

from measure import cpu, machine, options, peak_mib, short, summary, table
from ropewalk.codesign.circulants import best_rings
from ropewalk.codesign.forwarding import consistent
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.totient import directed_jumps
from ropewalk.fabric import Circulant, RandomRegular
from ropewalk.routing import coin_change, coin_change_routes, k_shortest

SERVERS = (128, 432, 1008)
PORTS = (4, 6, 8)
ROUTED = (128, 432)
"""Sizes whose all-to-all is routed: a thousand servers have a million pairs."""


def searches(servers: tuple[int, ...]) -> list[list[str]]:
    """A line for each size, number of ports and kind of cable."""
    best_jumps(16, 2, duplex=True)  # compile
    lines = []
    for size in servers:
        for ports in PORTS:
            for duplex in (True, False):
                rings = ports // 2 if duplex else ports
                best, seconds = cpu(partial(best_jumps, size, rings, duplex=duplex))
                rule = paper_jumps(size, rings, duplex=duplex)
                hops = [farthest_and_mean(size, jumps, duplex) for jumps in (rule, best)]
                kind = "duplex" if duplex else "simplex"
                lines.append([f"{size}, d={ports}, {kind}", *hops, short(seconds), " ".join(map(str, best))])
    return lines


def best_jumps(size: int, rings: int, duplex: bool) -> tuple[int, ...]:
    """The jumps of one group of all servers."""
    return best_rings(size, {size: rings}, duplex=duplex)[0][size]


def farthest_and_mean(size: int, jumps: tuple[int, ...], duplex: bool) -> str:
    """Hops between the servers that are farthest apart, and between two on the mean."""
    hops = coin_change(size, directed_jumps(size, jumps, duplex=duplex)).hops[1:]
    return f"{hops.max()}/{hops.mean():.3f}"


def routings(servers: tuple[int, ...]) -> list[list[str]]:
    """All pairs by coin change on the best circulant, and by 8 shortest paths, made to fit tables, on an expander."""
    lines = []
    for size in servers:
        src, dst = np.nonzero(~np.eye(size, dtype=bool))
        jumps = best_jumps(size, 4, duplex=True)
        circulant, expander = Circulant(size, jumps).build(), RandomRegular(size, 8, seed=1).build()
        k_shortest(8, extra_hops=1)(expander, src[:1], dst[:1])  # compile
        coins, seconds = cpu(partial(coin_change_routes, circulant, jumps, src, dst))
        lines.append([f"{size} coin change", str(coins.paths), short(seconds)])
        paths, seconds = cpu(partial(k_shortest(8, extra_hops=1), expander, src, dst))
        lines.append([f"{size} 8 shortest", str(paths.paths), short(seconds)])
        fitting, seconds = cpu(partial(consistent, paths))
        lines.append([f"{size} made to fit tables", str(fitting.paths), short(seconds)])
    return lines


def main() -> None:
    quick = options(__doc__).parse_args().quick
    print(machine())
    found = searches((128,) if quick else SERVERS)
    table("best jumps (diameter/mean hops)", ["servers", "rule", "best", "CPU s", "jumps"], found)
    table("all pairs", ["servers and router", "paths", "CPU s"], routings((128,) if quick else ROUTED))
    slowest = max(found, key=lambda line: float(line[3]))
    summary(f"best jumps in at most {slowest[3]} s ({slowest[0]}), {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main()
