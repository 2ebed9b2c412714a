"""Every policy by which jobs share a cluster: how they get GPUs and links, and how their flows find a spine.

Isolation only means something where routes follow it, so a policy that isolates jobs always routes by source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk.choices import Choice, Choices, nearest
from ropewalk.codesign.sharing import PANEL_PORTS, PATCH_S
from ropewalk.errors import ClusterError
from ropewalk.palette import BLUE, GREEN, LIME, MAROON, NAVY, OLIVE, ORCHID, TEAL
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.inside import ocs_vclos_pods
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.placements.table import PACKED, PLACEMENTS
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.routings import ROUTINGS, Routing, routing_named
from ropewalk.tenancy.shards.allocate import shard
from ropewalk.tenancy.shards.plant import LOOK_AHEAD, PanelPlant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.laas import laas
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors


def through_switches(failures: Sequence[Failure], plant: Plant) -> str | None:
    """The refusal of a policy that joins leafs and spines, or spines and cores, through optical switches."""
    if plant.rails > 1:
        return f"connects leafs and spines, or spines and cores, and {plant.name} has rails"
    if plant.cores and any(failure.parts.above_spines for failure in failures):
        return "has no links between spines and cores that could fail, and its cores are numbered anew"
    if not plant.cores and any(failure.parts.links for failure in failures):
        return "has no leaf-spine links that could fail"
    return None


def through_switches_in_pods(failures: Sequence[Failure], plant: Plant) -> str | None:
    """The refusal of a policy that joins the leafs and spines of pods through optical switches."""
    if plant.rails > 1:
        return f"connects leafs and spines of pods, and {plant.name} has rails"
    if not plant.cores:
        return f"connects leafs and spines of pods, and {plant.name} has two tiers, which ocs-vclos connects"
    if any(failure.parts.links for failure in failures):
        return "has no leaf-spine links that could fail"
    return None


def without_rails(failures: Sequence[Failure], plant: Plant) -> str | None:
    """The refusal of a policy that knows servers below one leaf."""
    return f"places servers below one leaf, and {plant.name} has rails" if plant.rails > 1 else None


def behind_patch_panels(failures: Sequence[Failure], plant: Plant) -> str | None:
    """The refusal of a policy whose servers have ports on patch panels, and no switches."""
    largest = int(plant.servers_per_unit.max(initial=0))
    if largest > PANEL_PORTS:
        return f"needs a port for each server of a rack, a panel has {PANEL_PORTS}, and {plant.name} has {largest}"
    parts = [failure.parts for failure in failures]
    if any(one.leafs or one.above_leafs or one.above_spines for one in parts):
        return "has no switches and no cables between them that could fail"
    return None


OPTICAL = "two tiers, or the cores of three, through optical switches; no failures of links that are circuits"
PANELS = f"servers with their NICs on patch panels, islands of up to {PANEL_PORTS:,}; failures of servers alone"
OPTICAL_PODS = "three tiers, through optical switches inside pods; no failures of links that are circuits"
OPTICAL_PLANTS = (OpticalPlant, CoreOpticalPlant, PodOpticalPlant)
VCLOS = "vClos (Computer Networks 2025, arXiv 2308.05692)"
TOPOOPT = "TopoOpt (NSDI 2023)"


@dataclass(frozen=True)
class Policy(Choice[Allocate]):
    """How jobs share a cluster: `make` gives a job GPUs, and links where it isolates jobs."""

    where: str = "two and three tiers, rails"
    routing: str = "source"
    """The routing whose rule flows follow to find a spine."""
    placement: str = ""
    """How servers are chosen, where jobs share links."""
    shares: bool = False
    """Do jobs share links?"""
    optical: bool = False
    """Does it join leafs and spines, or spines and cores, through optical switches?"""
    inside_pods: bool = False
    """Are these switches inside the pods of three tiers, and not above them?"""
    panels: int = 0
    """Patch panels for every port of servers, where these are joined without switches."""
    paper: str = ""
    """Where it was published."""
    freer_than: tuple[str, ...] = ()
    """Policies all of whose starts it has as well, where links are as free for both: tested on random states."""
    held_to: str = ""
    """What its answers are compared with in tests: a proof, a program, all choices."""
    compared: bool = False
    """Is it replayed beside others unless asked otherwise?"""
    buildable: bool = True
    """Can anybody have it?"""

    @property
    def simulated(self) -> bool:
        """Can a moment of it be simulated, all jobs on one network? Shards have nothing in common."""
        return ROUTINGS[self.routing].simulated and not self.panels

    @property
    def isolates(self) -> bool:
        """Do jobs get dedicated links?"""
        return not self.shares

    def plant(
        self, plant: Plant, circuit_delay_s: float = DEFAULT_RECONFIGURATION_S, patch_delay_s: float = PATCH_S
    ) -> Plant:
        """The plant this policy runs on: optical switches between its two highest tiers or in pods, or patch panels.

        What is optical already, or behind panels, keeps the delay of its own.
        """
        if self.optical and not isinstance(plant, OPTICAL_PLANTS):
            if self.inside_pods:
                return PodOpticalPlant.of_plant(plant, reconfiguration_s=circuit_delay_s)
            made = CoreOpticalPlant if plant.cores else OpticalPlant
            return made.of_plant(plant, reconfiguration_s=circuit_delay_s)
        if self.panels and not isinstance(plant, PanelPlant):
            return PanelPlant.of_plant(plant, patch_s=patch_delay_s, panels=self.panels)
        return plant

    def facts(self) -> dict[str, str]:
        return {**super().facts(), "published": self.paper or "–"}

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"held to": self.held_to}

    def occupancy(self, plant: Plant) -> Occupancy:
        """An empty state of the plant as this policy needs it."""
        return Occupancy(self.plant(plant))


ISOLATING = ("laas", "ocs-vclos-all-divisors", "ocs-vclos-pods", "topoopt")
"""Whoever shares every link starts whatever the freest policies with dedicated links start."""


def sharing(routing: Routing, placement: str = PACKED) -> Policy:
    """The policy of jobs that share links under a routing, with servers chosen by a placement."""
    named = routing.name if placement == PACKED else f"{routing.name}+{placement}"
    about = routing.about if placement == PACKED else f"{routing.about}; servers placed by {placement}"
    return Policy(
        named, PLACEMENTS.named(placement).make, about, routing.applies, routing.where, routing=routing.name,
        placement=placement, shares=True, freer_than=ISOLATING if routing.name == "ecmp" else (),
        compared=routing.compared and placement == PACKED,
        buildable=routing.buildable, colour=routing.colour, paper=routing.paper, held_to=routing.held_to,
    )  # fmt: skip


_SHARING = tuple(sharing(routing) for routing in ROUTINGS.values())

POLICIES = Choices(
    "policy",
    (
        *(one for one in _SHARING if one.buildable),
        Policy("laas", laas(), "equal leafs and one remainder leaf, dedicated links; flows of one job may still "
               "collide", without_rails, "two tiers, or inside a pod of three", colour=OLIVE,
               freer_than=("vclos-all-divisors",), paper="Links as a Service (ANCS 2016)",
               held_to="all choices of leafs and spines, on small states"),
        Policy("vclos", vclos(), "l leafs × s dedicated spines per job, in the published order of shapes",
               colour=BLUE, paper=VCLOS, held_to="the published integer program; a proof that no flows collide"),
        Policy("vclos-all-divisors", vclos(all_divisors), "l leafs × s dedicated spines, every divisor tried",
               colour=NAVY, freer_than=("vclos",), paper=VCLOS,
               held_to="the published integer program; a proof that no flows collide"),
        Policy("ocs-vclos", ocs_vclos, "dedicated circuits per job, set up at its start",
               through_switches, OPTICAL, colour=GREEN, optical=True, compared=True, freer_than=("vclos",), paper=VCLOS,
               held_to="the published integer programs, verbatim; a proof that no flows collide"),
        Policy("ocs-vclos-all-divisors", ocs_vclos_all_divisors, "dedicated circuits, every divisor tried",
               through_switches, OPTICAL, colour=TEAL, optical=True,
               freer_than=("ocs-vclos", "vclos-all-divisors"), paper=VCLOS,
               held_to="the published integer programs, verbatim; a proof that no flows collide"),
        Policy("ocs-vclos-pods", ocs_vclos_pods, "dedicated circuits inside pods and dedicated links between them",
               through_switches_in_pods, OPTICAL_PODS, colour=LIME, optical=True, inside_pods=True,
               freer_than=("vclos",), paper=VCLOS,
               held_to="the published integer programs over all pods, verbatim; a proof that no flows collide"),
        Policy("topoopt", shard, "servers behind patch panels and a topology of its own for every job, patched ahead "
               "on a second panel", behind_patch_panels, PANELS, colour=ORCHID, panels=LOOK_AHEAD, paper=TOPOOPT,
               held_to="the flow simulation of its exchanges on its cables; nothing leads out of a shard"),
        Policy("topoopt-one-panel", shard, "servers behind patch panels and a topology of its own for every job, "
               "patched when it starts", behind_patch_panels, PANELS, colour=MAROON, panels=1, paper=TOPOOPT,
               held_to="the flow simulation of its exchanges on its cables; nothing leads out of a shard"),
        *(one for one in _SHARING if not one.buildable),
    ),
    error=ClusterError,
    plural="policies",
)  # fmt: skip
"""All policies, from the least orderly to the most. Adding one is a file that allocates or routes and a line here."""

SHARED = "none"
"""Isolation by nobody: jobs get GPUs and share every link."""


def isolations() -> tuple[str, ...]:
    """Names of the policies that give jobs dedicated links."""
    return tuple(name for name, one in POLICIES.items() if one.isolates)


def instead_of(policy: Policy, failures: Sequence[Failure], plant: Plant) -> str:
    """Advice where a policy does not apply to a plant and its failures: those of its kind that do, by their option."""
    same = [one for one in _SHARING if not policy.isolates] or [POLICIES[name] for name in isolations()]
    names = [one.routing if one.shares else one.name for one in same if one.applies(failures, plant) is None]
    if policy.isolates:
        return f"use one of {', '.join((*names, SHARED))} (--isolate)"
    return f"use one of {', '.join(names)} (--routing)"


def allocator_named(name: str) -> Allocate:
    """What gives jobs GPUs, by the name of an isolation; `none` shares every link.

    >>> allocator_named("walls")
    Traceback (most recent call last):
        ...
    ropewalk.errors.ClusterError: there is no isolation 'walls': use one of laas, vclos, vclos-all-divisors, \
ocs-vclos, ocs-vclos-all-divisors, ocs-vclos-pods, topoopt, topoopt-one-panel, none
    """
    if name == SHARED:
        return gpus_only
    if name in ROUTINGS:
        raise ClusterError(
            f"{name} is a routing of jobs that share links: use --isolate {SHARED}, and --routing {name} in replays"
        )
    if name not in isolations():
        known = (*isolations(), SHARED)
        raise ClusterError(f"there is no isolation {name!r}: {nearest(name, known)}use one of {', '.join(known)}")
    return POLICIES[name].make


def policies_named(
    isolate: Sequence[str], routing: Sequence[str] | None, *, compare: bool, placement: Sequence[str] = (PACKED,)
) -> tuple[Policy, ...]:
    """The policies to replay, from the least orderly to the most.

    Routings belong to jobs that share links: they are replayed where they are named, where isolation `none` is, and in
    comparisons; each with every placement.

    >>> [policy.name for policy in policies_named(["vclos"], None, compare=True)]
    ['ecmp', 'source', 'vclos', 'ocs-vclos', 'ideal']
    >>> [policy.name for policy in policies_named(["none"], ["ecmp"], compare=False, placement=["packed", "random"])]
    ['ecmp', 'ecmp+random']
    """
    for name in isolate:
        allocator_named(name)
    for name in routing or ():
        routing_named(name)
    for name in placement:
        PLACEMENTS.named(name)
    wanted = {name for name in isolate if name != SHARED}
    if routing is not None:
        wanted |= set(routing)
    elif SHARED in isolate:
        wanted.add("ecmp")
    if compare:
        wanted |= {name for name, one in POLICIES.items() if one.compared and (routing is None or one.isolates)}
    if not wanted:
        raise ClusterError("there is nothing to replay: name an isolation or a routing")
    return tuple(
        made
        for name, policy in POLICIES.items()
        if name in wanted
        for made in ((policy,) if policy.isolates else (sharing(ROUTINGS[name], one) for one in placement))
    )
