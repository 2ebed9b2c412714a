"""Every policy by which jobs share a cluster: how they get GPUs and links, and how their flows find a spine.

Isolation only means something where routes follow it, so a policy that isolates jobs always routes by source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError
from ropewalk.palette import AMBER, BLUE, BROWN, GREEN, INK, NAVY, PINK, PURPLE, RED, RUST
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant
from ropewalk.tenancy.paths import Choose, balanced, ecmp, ideal, polarised_ecmp, source
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.laas import laas
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors


def cables_may_die(failures: Sequence[Failure]) -> str | None:
    """The refusal of a policy whose leafs and spines have fibres to optical switches, and no cables to each other."""
    if any(failure.parts.links for failure in failures):
        return "has no leaf-spine links that could fail"
    return None


OPTICAL = "leaf-spine through optical switches; no failures of leaf-spine links"


@dataclass(frozen=True)
class Policy(Choice[Allocate]):
    """How jobs share a cluster: `make` gives a job GPUs, and links where it isolates jobs."""

    where: str = "leaf-spine"
    routing: str = "source"
    """The policy whose rule flows follow to find a spine."""
    paths: Choose | None = None
    """That rule, where jobs share links."""
    optical: bool = False
    """Does it join leafs and spines through optical switches?"""
    compared: bool = False
    """Is it replayed beside others unless asked otherwise?"""

    @property
    def isolates(self) -> bool:
        """Do jobs get links of their own?"""
        return self.paths is None

    @property
    def shares(self) -> bool:
        """Do jobs share links?"""
        return not self.isolates

    def plant(self, plant: Plant, circuit_delay_s: float = DEFAULT_RECONFIGURATION_S) -> Plant:
        """The plant this policy runs on: an optical one has switches in the middle of all leaf-spine cables.

        What is optical already keeps the delay of its own.
        """
        if self.optical and not isinstance(plant, OpticalPlant):
            return OpticalPlant.of_plant(plant, reconfiguration_s=circuit_delay_s)
        return plant

    def occupancy(self, plant: Plant) -> Occupancy:
        """An empty state of the plant as this policy needs it."""
        return Occupancy(self.plant(plant))


POLICIES = Choices(
    "policy",
    (
        Policy("ecmp-polarised", gpus_only, "links shared, the same hash at every switch", routing="ecmp-polarised",
               paths=polarised_ecmp, colour=RUST),
        Policy("ecmp", gpus_only, "links shared, a hash picks the spine of every flow", routing="ecmp", paths=ecmp,
               colour=RED, compared=True),
        Policy("balanced", gpus_only, "links shared, every flow on the least loaded path when its job starts",
               routing="balanced", paths=balanced, colour=BROWN),
        Policy("source", gpus_only, "links shared, the spine of a flow is that of its sender's place on the leaf",
               paths=source, colour=AMBER, compared=True),
        Policy("laas", laas(), "equal leafs and one remainder leaf, links of its own; rounds of a job may still "
               "collide", colour=PINK),
        Policy("vclos", vclos(), "l leafs times s spines of its own for every job, in the published order of shapes",
               colour=BLUE),
        Policy("vclos-all-divisors", vclos(all_divisors), "l leafs times s spines of its own, every divisor tried",
               colour=NAVY),
        Policy("ocs-vclos", ocs_vclos, "circuits of its own for every job, set up when it starts",
               cables_may_die, OPTICAL, colour=GREEN, optical=True, compared=True),
        Policy("ocs-vclos-all-divisors", ocs_vclos_all_divisors, "circuits of its own, every divisor tried",
               cables_may_die, OPTICAL, colour=PURPLE, optical=True),
        Policy("ideal", gpus_only, "links shared, and no link ever holds a flow up", routing="ideal", paths=ideal,
               colour=INK, compared=True),
    ),
    error=ClusterError,
    plural="policies",
)  # fmt: skip
"""All policies, from the least orderly to the most. Adding one is a file that allocates or routes and a line here."""

SHARED = "none"
"""Isolation by nobody: jobs get GPUs and share every link."""


def isolations() -> tuple[str, ...]:
    """Names of the policies that give jobs links of their own."""
    return tuple(name for name, one in POLICIES.items() if one.isolates)


def routings() -> tuple[str, ...]:
    """Names of the policies under which jobs share links."""
    return tuple(name for name, one in POLICIES.items() if one.shares)


def allocator_named(name: str) -> Allocate:
    """What gives jobs GPUs, by the name of an isolation; `none` shares every link.

    >>> allocator_named("walls")
    Traceback (most recent call last):
        ...
    ropewalk.errors.ClusterError: there is no isolation 'walls': use one of laas, vclos, vclos-all-divisors, \
ocs-vclos, ocs-vclos-all-divisors, none
    """
    if name == SHARED:
        return gpus_only
    if name not in isolations():
        raise ClusterError(f"there is no isolation {name!r}: use one of {', '.join((*isolations(), SHARED))}")
    return POLICIES[name].make


def routing_named(name: str) -> Choose:
    """How flows find a spine, by the name of a policy under which jobs share links."""
    paths = POLICIES[name].paths if name in POLICIES else None
    if paths is None:
        raise ClusterError(f"there is no routing {name!r}: use one of {', '.join(routings())}")
    return paths


def policies_named(isolate: Sequence[str], routing: Sequence[str] | None, *, compare: bool) -> tuple[Policy, ...]:
    """The policies to replay, from the least orderly to the most.

    Routings belong to jobs that share links: they are replayed where they are named, where isolation `none` is, and in
    comparisons.

    >>> [policy.name for policy in policies_named(["vclos"], None, compare=True)]
    ['ecmp', 'source', 'vclos', 'ocs-vclos', 'ideal']
    >>> [policy.name for policy in policies_named(["none"], ["ecmp"], compare=False)]
    ['ecmp']
    """
    for name in isolate:
        allocator_named(name)
    for name in routing or ():
        routing_named(name)
    wanted = {name for name in isolate if name != SHARED}
    if routing is not None:
        wanted |= set(routing)
    elif SHARED in isolate:
        wanted.add("ecmp")
    if compare:
        wanted |= {name for name, one in POLICIES.items() if one.compared and (routing is None or one.isolates)}
    if not wanted:
        raise ClusterError("there is nothing to replay: name an isolation or a routing")
    return tuple(policy for name, policy in POLICIES.items() if name in wanted)
