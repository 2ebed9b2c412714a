"""Leaf rules: what makes a leaf send each NIC's traffic up the link that the job was given.

Source routing on a leaf is policy routing: match the address of the NIC, set the next hop. One rule for every GPU of a
job on that leaf is enough, however many connections it has. Before them stands one rule a leaf for what stays on it:
traffic to the leaf's own subnet is forwarded as always. Spines route by destination and need nothing per job, unless
optical circuits join them to a leaf several times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from ropewalk.errors import ClusterError, Findings
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.optical.circuits import ends_of
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant

LOCAL_PRIORITY = 2000
SOURCE_PRIORITY = 1000
"""The higher number is looked at first. Source rules never match the same packet, so they share one."""


@dataclass(frozen=True)
class SourceRule:
    """Traffic from one NIC leaves over one cable."""

    gpu: int
    source: IPv4Address
    spine: int
    cable: int
    next_hop: IPv4Address
    job: str = ""
    """Whose GPU it is; not every format keeps it."""
    priority: int = SOURCE_PRIORITY
    generation: int = 0
    """Of the allocation it was made from, where a controller counts them; only SONiC's format keeps it."""


@dataclass(frozen=True)
class LeafRules:
    """All rules of one leaf."""

    leaf: int
    subnet: IPv4Network
    """What stays on the leaf."""
    sources: tuple[SourceRule, ...]
    """In the order of GPUs."""
    local_priority: int = LOCAL_PRIORITY


def leaf_rules(plant: Plant, allocations: Iterable[Allocation], addresses: AddressPlan) -> tuple[LeafRules, ...]:
    """The rules of every leaf that has any, for jobs that run at the same time; checked before they are handed out.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x2x2", gpus_per_server=2)
    >>> links = ((0, 0), (0, 1), (1, 0), (1, 1))
    >>> job = Allocation("a", (0, 1, 2, 3), "clos", (0, 1), (0, 1), links, (0, 1, 0, 1), (0, 0, 1, 1))
    >>> [len(one.sources) for one in leaf_rules(small, [job], AddressPlan.numbered(small))]
    [2, 2]
    """
    jobs = tuple(allocations)
    by_leaf: dict[int, list[SourceRule]] = {}
    for job in jobs:
        for leaf, gpu, spine, cable in uplinks(plant, job):
            hop = addresses.next_hops.get((leaf, spine, cable))
            if hop is None:
                name = f"cable {cable} from {plant.leaf_names[leaf]} to {plant.spine_names[spine]}"
                raise ClusterError(f"job {job.job} uses {name}, which has no address: add it to the address plan")
            rule = SourceRule(gpu, addresses.nics[gpu], spine, cable, hop, job.job)
            by_leaf.setdefault(leaf, []).append(rule)
    rules = tuple(
        LeafRules(leaf, addresses.subnets[leaf], tuple(sorted(by_leaf[leaf], key=lambda rule: rule.gpu)))
        for leaf in sorted(by_leaf)
    )
    check_rules(rules, plant, jobs, addresses)
    return rules


def uplinks(plant: Plant, job: Allocation) -> list[tuple[int, int, int, int]]:
    """(leaf, GPU, spine, cable) of every GPU of a job that sends beyond its leaf.

    GPUs of one leaf that share a spine take the reserved cables to it in turn; where the job promises to be free of
    contention, there must be one for each.
    """
    if job.stage == "ocs":
        return _fibres(plant, job)
    if job.core_links:
        raise ClusterError(
            f"job {job.job} sends over cores, and its spines would need rules as well, which are not written: keep it "
            "in one pod, or route it by ECMP"
        )
    held: dict[tuple[int, int], list[int]] = {}
    for leaf, spine, cable in sorted(job.reserved()):
        held.setdefault((leaf, spine), []).append(cable)
    used: Counter[tuple[int, int]] = Counter()
    found = []
    for gpu, leaf, spine in zip(job.gpus, job.leaf_of_gpu, job.spine_of_gpu, strict=True):
        if spine == OWN_LEAF:
            continue
        cables = held.get((leaf, spine), []) if job.links else [_static_cable(plant, gpu, leaf, spine)]
        turn = used[leaf, spine]
        if not cables or (turn >= len(cables) and _is_alone(job)):
            raise ClusterError(
                f"job {job.job} sends GPU {gpu} from {plant.leaf_names[leaf]} to {plant.spine_names[spine]} without "
                "its own cable: reserve one for every GPU"
            )
        found.append((leaf, gpu, spine, cables[turn % len(cables)]))
        used[leaf, spine] += 1
    return found


def _fibres(plant: Plant, job: Allocation) -> list[tuple[int, int, int, int]]:
    """Over circuits a GPU goes up the fibre of its own circuit; the plant names fibres by their optical switch.

    Circuits are listed in the order of ranks. Where several of them join the same leaf and spine, that spine has to
    choose among them by the destination's NIC, which no rule of a leaf can do for it.
    """
    if not isinstance(plant, OpticalPlant):
        raise ClusterError(
            f"job {job.job} has optical circuits, but {plant.name} has no optical switches: give its plant"
        )
    switches = ends_of(plant, job).switch.tolist()[: job.size]
    seats = zip(job.leaf_of_gpu, job.gpus, switches, strict=True)
    return [(leaf, gpu, plant.packet_spines + switch, 0) for leaf, gpu, switch in seats]


def _is_alone(job: Allocation) -> bool:
    """Has every GPU of the job an uplink that nobody else uses?"""
    return bool(job.links) and job.guarantee == "contention-free"


def _static_cable(plant: Plant, gpu: int, leaf: int, spine: int) -> int:
    """Without cables of its own, a GPU uses the one of its place on the leaf, counted through all cables."""
    place = int(plant.place_on_leaf[gpu])
    count = int(plant.cables[leaf].sum())
    cable = place % count - int(plant.cables[leaf, :spine].sum())
    return cable if 0 <= cable < plant.cables[leaf, spine] else 0


def check_rules(
    rules: Sequence[LeafRules], plant: Plant, allocations: Iterable[Allocation], addresses: AddressPlan
) -> None:
    """Exactly one rule for every GPU that sends beyond its leaf, on its leaf, to its spine; nothing else anywhere.

    This holds for rules that were made and for rules that were read back from a switch.
    """
    findings = Findings(ClusterError, f"leaf rules of {plant.name}")
    wanted: dict[int, tuple[int, int, bool]] = {}
    for job in allocations:
        for leaf, gpu, spine, _ in uplinks(plant, job):
            wanted[gpu] = (leaf, spine, _is_alone(job))
    leafs = Counter(one.leaf for one in rules)
    for leaf in (leaf for leaf, count in leafs.items() if count > 1):
        findings.add(f"{plant.leaf_names[leaf]} is listed {leafs[leaf]} times: list it once")
    held = Counter(rule.gpu for one in rules for rule in one.sources)
    for gpu in wanted:
        if held[gpu] != 1:
            findings.add(f"GPU {gpu} has {held[gpu]} rules: give it exactly one, on {plant.leaf_names[wanted[gpu][0]]}")
    taken: dict[IPv4Address, int] = {}
    for one in rules:
        _check_leaf(one, plant, wanted, addresses, taken, findings)
    findings.raise_if_any()


def _check_leaf(
    one: LeafRules,
    plant: Plant,
    wanted: dict[int, tuple[int, int, bool]],
    addresses: AddressPlan,
    taken: dict[IPv4Address, int],
    findings: Findings,
) -> None:
    name = plant.leaf_names[one.leaf]
    if one.subnet != addresses.subnets[one.leaf]:
        findings.add(f"{name} keeps {one.subnet} local: keep its own subnet, {addresses.subnets[one.leaf]}")
    for rule in one.sources:
        if rule.priority >= one.local_priority:
            findings.add(f"{name}: the rule of GPU {rule.gpu} precedes the local one: give it a lower priority")
        if rule.gpu not in wanted:
            findings.add(f"{name}: GPU {rule.gpu} sends nothing beyond its leaf: remove its rule")
            continue
        leaf, spine, alone = wanted[rule.gpu]
        if leaf != one.leaf:
            findings.add(f"{name}: GPU {rule.gpu} is on {plant.leaf_names[leaf]}: move its rule there")
        if rule.source != addresses.nics[rule.gpu]:
            findings.add(f"{name}: GPU {rule.gpu} has {addresses.nics[rule.gpu]}, not {rule.source}: fix its rule")
        towards = addresses.cable_to.get(rule.next_hop)
        if rule.spine != spine or towards != (one.leaf, spine, rule.cable):
            findings.add(f"{name}: the rule of GPU {rule.gpu} does not lead to {plant.spine_names[spine]}: fix it")
        if alone and taken.setdefault(rule.next_hop, rule.gpu) != rule.gpu:
            findings.add(f"{name}: GPUs {taken[rule.next_hop]} and {rule.gpu} share an uplink: give each its own")
