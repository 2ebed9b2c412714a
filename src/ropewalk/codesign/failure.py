"""A plan after something has failed: what is left of its network, and how its traffic goes on.

A network that was designed has routes of its own. First aid needs no hands: a hop that lost its cable takes the detour
with the fewest hops over cables that are left, over one laid for pairs where that is as short, since rings are the busy
ones. That is how the job runs until somebody has patched spare ports, which makes the wiring the same graph again.
Every other network is routed anew, over what has not failed.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ropewalk.codesign.rings import ring_cables
from ropewalk.errors import ClusterError, FabricError, Findings
from ropewalk.fabric.wiring import Wiring
from ropewalk.plans import Designed
from ropewalk.routing.listed import Path
from ropewalk.training import TrainingQuestion

Detours = dict[tuple[int, int], tuple[int, ...]]
"""By hop that lost its cable, the servers that its bytes pass now, both ends included."""

_CABLE = re.compile(r"server([0-9]{1,6})-(>?)server([0-9]{1,6})")
MOST_NAMED = 4


def after_failure(question: TrainingQuestion, failed: Sequence[str]) -> tuple[TrainingQuestion, tuple[str, ...]]:
    """The question of a plan after these parts have failed, and where bytes go instead, in sentences.

    Parts have the names of a cluster file; of a network that was designed, cables can fail: `server0-server5`.
    """
    designed = question.network.designed
    if designed is None:
        cluster = replace(question.place, failed=(*question.place.failed, *failed))
        if cluster.gpus < question.gpu_count:
            raise ClusterError(
                f"without {', '.join(failed)}, {cluster.gpus} of the plan's {question.gpu_count} GPUs are left: plan "
                "again, on a cluster file that lists them as failed"
            )
        return replace(question, cluster=cluster, network=replace(question.network, routing="default")), ()
    left, detours = without_cables(designed, failed)
    said = (
        f"no cable from server{a} to server{b}: its traffic is routed {_said(way)}" for (a, b), way in detours.items()
    )
    return replace(question, network=replace(question.network, designed=left)), tuple(said)


def without_cables(designed: Designed, failed: Iterable[str]) -> tuple[Designed, Detours]:
    """The network without one cable for each name, every path that used a hop with no cable left led around it."""
    findings = Findings(FabricError, "failed cables")
    wiring, lost = designed.wiring, []
    for name in failed:
        ends = _ends(name, wiring)
        if ends is None:
            findings.add(f"there is no cable {name}: {_cables_near(name, designed.wiring)}")
            continue
        wiring = _without(wiring, ends)
        lost += [ends, ends[::-1]] if wiring.duplex else [ends]
    findings.raise_if_any()
    joined = {cable[:2] for cable in wiring.cables}
    joined |= {(b, a) for a, b in joined} if wiring.duplex else set()
    detours = {hop: detour(wiring, *hop) for hop in lost if hop not in joined}
    return Designed(wiring, _led_around(designed.routes, detours)), detours


def detour(wiring: Wiring, a: int, b: int) -> tuple[int, ...]:
    """The path from a to b with the fewest hops; of equal ones that over the fewest cables of rings, then the lowest
    servers."""
    of_rings = ring_cables(wiring)
    beside: dict[int, list[tuple[int, int]]] = {server: [] for server in range(wiring.servers)}
    for low, high, count in wiring.cables:
        only_rings = int(of_rings[low, high] >= count)
        beside[low].append((high, only_rings))
        if wiring.duplex:
            beside[high].append((low, only_rings))
    heap: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, (a,))]
    seen: set[int] = set()
    while heap:
        hops, busy, path = heapq.heappop(heap)
        if path[-1] == b:
            return path
        if path[-1] in seen:
            continue
        seen.add(path[-1])
        for onward, only_rings in beside[path[-1]]:
            if onward not in seen:
                heapq.heappush(heap, (hops + 1, busy + only_rings, (*path, onward)))
    raise FabricError(f"server{b} is no longer reachable from server{a}: plan again for the cables that are left")


def _ends(name: str, wiring: Wiring) -> tuple[int, int] | None:
    """The servers of a cable as the wiring lists them; None where it has no such cable."""
    found = _CABLE.fullmatch(name)
    if found is None:
        return None
    a, b = int(found[1]), int(found[3])
    known = {cable[:2] for cable in wiring.cables}
    return next((ends for ends in ((a, b),) + (() if found[2] else ((b, a),)) if ends in known), None)


def _without(wiring: Wiring, ends: tuple[int, int]) -> Wiring:
    """The wiring with one cable less between two servers; rings keep their order."""
    cables = ((low, high, count - ((low, high) == ends)) for low, high, count in wiring.cables)
    return replace(wiring, cables=tuple(cable for cable in cables if cable[2]))


def _led_around(routes: Iterable[Path], detours: Detours) -> tuple[Path, ...]:
    """The same paths over detours; paths of a pair that have become one are one."""
    shares: dict[tuple[int, ...], float] = {}
    for share, nodes in routes:
        passed = list(nodes[:1])
        for hop in pairwise(nodes):
            for node in detours.get(hop, hop)[1:]:
                # A detour may come back to where the path has been: it need not leave in the first place.
                passed = passed[: passed.index(node)] if node in passed else passed
                passed.append(node)
        shares[tuple(passed)] = shares.get(tuple(passed), 0.0) + share
    return tuple((share, nodes) for nodes, share in shares.items())


def _cables_near(name: str, wiring: Wiring) -> str:
    """What somebody may have meant: cables of the servers that were named."""
    named = {int(number) for number in re.findall(r"[0-9]{1,6}", name)}
    near = [f"server{a}-server{b}" for a, b, _ in wiring.cables if {a, b} & named]
    listed = near or [f"server{a}-server{b}" for a, b, _ in wiring.cables]
    return f"it has {', '.join(listed[:MOST_NAMED])}" + (", …" if len(listed) > MOST_NAMED else "")


def _said(path: tuple[int, ...]) -> str:
    return "-".join(f"server{server}" for server in path)
