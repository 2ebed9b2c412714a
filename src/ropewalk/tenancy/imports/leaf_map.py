"""Which server hangs on which leaf, as schedulers' files say it, and the plant it becomes with what they leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH
from ropewalk.fabric.parameters import numbered
from ropewalk.tenancy.plant import DEFAULT_SERVER_BANDWIDTH, Plant


@dataclass(frozen=True)
class AssumedCabling:
    """What files of schedulers do not say about a cluster. Bandwidths are bytes/s."""

    gpus_per_server: int = 8
    spines: int | None = None
    """None: as many as the file lists; where it lists none, one cable up for every GPU of the fullest leaf."""
    cables: int = 1
    """Parallel cables between a leaf and a spine."""
    nic_bandwidth: float = DEFAULT_BANDWIDTH
    link_bandwidth: float = DEFAULT_BANDWIDTH
    server_bandwidth: float = DEFAULT_SERVER_BANDWIDTH
    under: str | None = None
    """Only the leafs below this switch."""
    join_pods: bool = False
    """Take leafs below different switches as one cluster in which every spine reaches every leaf."""

    def __post_init__(self) -> None:
        findings = Findings(FabricError, "cabling")
        for what, count in (
            ("gpus_per_server", self.gpus_per_server),
            ("cables", self.cables),
            ("spines", 1 if self.spines is None else self.spines),
        ):
            if count < 1:
                findings.add(f"{what} is {count}: give 1 or more")
        findings.raise_if_any()


@dataclass(frozen=True)
class LeafMap:
    """Servers by leaf, leafs and what is above them in the order of the file, each with its line."""

    path: str
    leafs: Mapping[str, tuple[str, ...]]
    """Leaf -> its servers."""
    above: Mapping[str, tuple[str, ...]]
    """Leaf or switch -> the switches right above it."""
    line_of: Mapping[str, int]
    """Line of each leaf."""

    @property
    def servers(self) -> int:
        return sum(map(len, self.leafs.values()))

    def pods(self) -> tuple[str, ...]:
        """The switches right above leafs, where each leaf has exactly one: more than one of them are pods."""
        tops = [self.above.get(leaf, ()) for leaf in self.leafs]
        return tuple(dict.fromkeys(top[0] for top in tops)) if all(len(top) == 1 for top in tops) else ()

    def below(self, switch: str) -> LeafMap:
        """Only the leafs that have this switch above them, however far up."""
        kept = {leaf: servers for leaf, servers in self.leafs.items() if switch in self._ancestors(leaf)}
        if not kept:
            switches = sorted({one for tops in self.above.values() for one in tops})
            raise FabricError(
                f"{self.path}: no leaf is below a switch {switch!r}: name one of {', '.join(switches[:20]) or 'none'}"
            )
        return LeafMap(self.path, kept, self.above, self.line_of)

    def plant(self, cabling: AssumedCabling | None = None, name: str | None = None) -> Plant:
        """The cluster, leafs in the order of the file, with what only the operator knows."""
        chosen = cabling or AssumedCabling()
        if chosen.under is not None:
            lower = self.below(chosen.under)
            return lower.plant(replace(chosen, under=None), name or f"{Path(self.path).name}:{chosen.under}")
        names, spines = self._spines(chosen)
        leafs = list(self.leafs)
        cables = np.zeros((len(leafs), len(names)), np.int32)
        for at, leaf in enumerate(leafs):
            cables[at, [names.index(spine) for spine in spines[leaf]]] = chosen.cables
        return Plant(
            name=name or Path(self.path).name,
            gpus_per_server=chosen.gpus_per_server,
            server_leaf=np.repeat(np.arange(len(leafs), dtype=np.int32), [len(self.leafs[leaf]) for leaf in leafs]),
            cables=cables,
            nic_bandwidth=chosen.nic_bandwidth,
            link_bandwidth=chosen.link_bandwidth,
            server_bandwidth=chosen.server_bandwidth,
            server_names=tuple(server for leaf in leafs for server in self.leafs[leaf]),
            leaf_names=tuple(leafs),
            spine_names=tuple(names),
        )

    def _spines(self, cabling: AssumedCabling) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
        """(names of all spines, spines of each leaf)."""
        tops = {leaf: self.above.get(leaf, ()) for leaf in self.leafs}
        uplinks = {leaf: len(above) for leaf, above in tops.items()}
        most = max(uplinks, key=lambda leaf: uplinks[leaf])
        findings = Findings(FabricError, self.path)
        for leaf, count in uplinks.items():
            if count != uplinks[most]:
                findings.add(
                    f"line {self.line_of[leaf]}: leaf {leaf!r} has {count} uplinks, but {most!r} (line "
                    f"{self.line_of[most]}) has {uplinks[most]}: list every spine above every leaf, or one top switch"
                )
        findings.raise_if_any()
        if uplinks[most] > 1:
            listed = list(dict.fromkeys(spine for above in tops.values() for spine in above))
            if cabling.spines not in (None, len(listed)):
                raise FabricError(
                    f"{self.path}: {len(listed)} spines are listed, but {cabling.spines} are asked for: "
                    "leave the number of spines out"
                )
            return listed, tops
        pods = self.pods()
        if len(pods) > 1 and not cabling.join_pods:
            raise FabricError(
                f"{self.path}: leafs are below {len(pods)} switches ({', '.join(pods[:8])}), a plant has two tiers: "
                f"choose one of them (--under {pods[0]}), or join them into one cluster (--join-pods)"
            )
        fullest = max(map(len, self.leafs.values())) * cabling.gpus_per_server
        names = numbered("spine", cabling.spines or -(-fullest // cabling.cables))
        return names, dict.fromkeys(self.leafs, names)

    def _ancestors(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = list(self.above.get(name, ()))
        while waiting:
            switch = waiting.pop()
            if switch not in found:
                found.add(switch)
                waiting.extend(self.above.get(switch, ()))
        return found
