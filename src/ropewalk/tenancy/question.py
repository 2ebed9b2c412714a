"""What is asked of a trace: which jobs, on which plant, under which policies and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.codesign.sharing import PATCH_S
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy, instead_of
from ropewalk.tenancy.simulation import Rules


@dataclass(frozen=True)
class Conditions:
    """What all policies have in common."""

    queue: str = "fifo"
    backfill: str | None = None
    seed: int = 0
    circuit_delay_s: float = DEFAULT_RECONFIGURATION_S
    """From the start of a job with optical circuits to its first byte."""
    patch_delay_s: float = PATCH_S
    """From the order to patch a job's shard until its last fibre is in place."""
    rule_delay_s: float = 0.0
    """From the start of a job with dedicated links to its first byte."""
    failures: tuple[Failure, ...] = ()
    when_a_link_dies: str = "ecmp"
    """What a job with dedicated links does then: a name of `WHEN_A_LINK_DIES`."""

    def remedy(self, policy: Policy, plant: Plant) -> str:
        """What to do where a policy does not apply."""
        return instead_of(policy, self.failures, plant)

    def rules(self, routing: str) -> Rules:
        """How a cluster with this routing is run under them."""
        backfill = self.backfill or "none"
        return Rules(routing, self.queue, backfill, self.seed, self.when_a_link_dies, self.rule_delay_s)


@dataclass(frozen=True, eq=False)
class ClusterQuestion:
    """The same jobs on the same plant, to be replayed once for each policy."""

    plant: Plant
    jobs: Sequence[Job]
    policies: Sequence[Policy]
    conditions: Conditions = Conditions()
    trace: str = "jobs"
    """What the jobs are called: a file, or the recipe of a synthetic trace."""
    said: tuple[str, ...] = ()
    """What the jobs train and how that was found, in sentences: the first thing to know."""
    warnings: tuple[str, ...] = ()
    """What makes the numbers differ from what was meant, probably."""
    notes: tuple[str, ...] = ()
