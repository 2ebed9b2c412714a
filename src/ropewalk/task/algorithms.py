"""Which algorithm each collective of a step runs: a table from act to name to the program it makes.

An algorithm is a function from how the ranks of a group sit in servers to a program. The programs are those of
`ropewalk.collective`, so every one of them proves itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ropewalk.collective import (
    Program,
    binomial_broadcast,
    binomial_reduce,
    direct_all_to_all,
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
    hierarchical_all_to_all,
    mesh_all_gather,
    mesh_all_reduce,
    mesh_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.collective.over_servers import (
    Servers,
    chain_broadcast_over,
    chain_reduce_over,
    server_hierarchy,
    server_rings,
)
from ropewalk.errors import ProgramError
from ropewalk.task.step import Act

Algorithm = Callable[[Servers], Program]
"""From the number of ranks in each server to the program of all of them; the root of a rooted one is rank 0."""


def _hierarchical_exchange(servers: Servers) -> Program:
    """Two rounds over servers; where there is only one level, a direct exchange is what is left of them."""
    if len(set(servers)) > 1:
        raise ProgramError(
            f"a hierarchical all-to-all of servers with {sorted(set(servers))} ranks: it needs as many ranks in every "
            "server; use the direct one"
        )
    if min(len(servers), servers[0]) == 1:
        return direct_all_to_all(sum(servers))
    return hierarchical_all_to_all(len(servers), servers[0])


ALGORITHMS: dict[Act, dict[str, Algorithm]] = {
    Act.ALL_REDUCE: {
        "ring": lambda servers: server_rings(servers).all_reduce("ring all-reduce over servers"),
        "hierarchical": lambda servers: server_hierarchy(servers).all_reduce("hierarchical all-reduce"),
        "halving-doubling": lambda servers: halving_doubling_all_reduce(sum(servers)),
        "mesh": lambda servers: mesh_all_reduce(sum(servers)),
    },
    Act.ALL_GATHER: {
        "ring": lambda servers: server_rings(servers).all_gather("ring all-gather over servers"),
        "hierarchical": lambda servers: server_hierarchy(servers).all_gather("hierarchical all-gather"),
        "halving-doubling": lambda servers: doubling_all_gather(sum(servers)),
        "mesh": lambda servers: mesh_all_gather(sum(servers)),
    },
    Act.REDUCE_SCATTER: {
        "ring": lambda servers: server_rings(servers).reduce_scatter("ring reduce-scatter over servers"),
        "hierarchical": lambda servers: server_hierarchy(servers).reduce_scatter("hierarchical reduce-scatter"),
        "halving-doubling": lambda servers: halving_reduce_scatter(sum(servers)),
        "mesh": lambda servers: mesh_reduce_scatter(sum(servers)),
    },
    Act.ALL_TO_ALL: {
        "direct": lambda servers: direct_all_to_all(sum(servers)),
        "shift": lambda servers: shift_all_to_all(sum(servers)),
        "hierarchical": _hierarchical_exchange,
    },
    Act.BROADCAST: {
        "ring": chain_broadcast_over,
        "tree": lambda servers: binomial_broadcast(sum(servers)),
    },
    Act.REDUCE: {
        "ring": chain_reduce_over,
        "tree": lambda servers: binomial_reduce(sum(servers)),
    },
}
"""Every algorithm by act and by the name people type. A barrier moves nothing and has none."""

DEFAULT_NAMES: dict[Act, str] = {
    Act.ALL_REDUCE: "ring",
    Act.ALL_GATHER: "ring",
    Act.REDUCE_SCATTER: "ring",
    Act.ALL_TO_ALL: "direct",
    Act.BROADCAST: "ring",
    Act.REDUCE: "ring",
}
"""What NCCL does with large buffers."""

FAMILIES: dict[str, dict[Act, str]] = {
    "ring": DEFAULT_NAMES,
    "hierarchical": {
        Act.ALL_REDUCE: "hierarchical",
        Act.ALL_GATHER: "hierarchical",
        Act.REDUCE_SCATTER: "hierarchical",
        Act.ALL_TO_ALL: "hierarchical",
        Act.BROADCAST: "ring",
        Act.REDUCE: "ring",
    },
    "halving-doubling": {
        Act.ALL_REDUCE: "halving-doubling",
        Act.ALL_GATHER: "halving-doubling",
        Act.REDUCE_SCATTER: "halving-doubling",
        Act.ALL_TO_ALL: "direct",
        Act.BROADCAST: "tree",
        Act.REDUCE: "tree",
    },
    "mesh": {
        Act.ALL_REDUCE: "mesh",
        Act.ALL_GATHER: "mesh",
        Act.REDUCE_SCATTER: "mesh",
        Act.ALL_TO_ALL: "direct",
        Act.BROADCAST: "tree",
        Act.REDUCE: "tree",
    },
}
"""One word for a whole set of algorithms: what to choose for each act."""


def choose_algorithms(names: Mapping[Act, str] | None = None, family: str = "ring") -> dict[Act, Algorithm]:
    """The algorithm of every act: those of a family, save where `names` says otherwise.

    >>> choose_algorithms({Act.ALL_TO_ALL: "shift"})[Act.ALL_TO_ALL]((4,)).name
    'shifted all-to-all'
    """
    if family not in FAMILIES:
        raise ProgramError(f"there is no family of algorithms {family!r}: choose {', '.join(FAMILIES)}")
    wanted = {**FAMILIES[family], **(names or {})}
    for act, name in wanted.items():
        if act not in ALGORITHMS:
            raise ProgramError(f"{act.name.lower().replace('_', '-')} runs no algorithm: leave it out")
        if name not in ALGORITHMS[act]:
            known = ", ".join(ALGORITHMS[act])
            raise ProgramError(f"there is no {act.name.lower().replace('_', '-')} {name!r}: choose {known}")
    return {act: ALGORITHMS[act][name] for act, name in wanted.items()}
