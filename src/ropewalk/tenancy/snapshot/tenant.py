"""The jobs that run at one moment: where each is, what it does in an iteration, and over which links its flows go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.rates import JobPace, SharedNetwork


@dataclass(frozen=True, eq=False)
class Tenant:
    """A running job."""

    allocation: Allocation
    footprint: Footprint
    """Its work, and the cables of its flows as the policy chose them."""
    number: int = 0
    """Its place in the trace."""
    start_s: float = 0.0
    """Seconds from the moment to the begin of its next iteration."""

    @property
    def name(self) -> str:
        return self.allocation.job

    def scaled(self, factor: float) -> Tenant:
        """The same job with all times and sizes so many times as large: what overlaps what stays the same."""
        footprint = self.footprint
        work = footprint.work
        smaller = replace(
            work,
            compute_s=work.compute_s * factor,
            exchanges=tuple(
                replace(
                    one,
                    size_bytes=one.size_bytes * factor,
                    overlap_s=one.overlap_s * factor,
                    after_s=one.after_s * factor,
                )
                for one in work.exchanges
            ),
        )
        return replace(
            self,
            footprint=replace(
                footprint, work=smaller, floor_s=footprint.floor_s * factor, flow_s=footprint.flow_s * factor
            ),
            start_s=self.start_s * factor,
        )


@dataclass(frozen=True, eq=False)
class Moment:
    """The jobs that run at one time on a plant, and the policy by which they share it."""

    plant: Plant
    policy: Policy
    seed: int
    tenants: tuple[Tenant, ...]
    """In the order of the trace."""
    taken: str
    """Where this comes from, in words."""

    def of_jobs(self, names: Sequence[str]) -> Moment:
        """The same moment with only some of the jobs."""
        running = {tenant.name: tenant for tenant in self.tenants}
        strangers = [name for name in names if name not in running]
        if strangers:
            known = ", ".join(list(running)[:8])
            raise ClusterError(
                f"{', '.join(strangers)} {'does' if len(strangers) == 1 else 'do'} not run {self.taken}: choose of "
                f"{known}{', …' if len(running) > 8 else ''}"
            )
        return replace(self, tenants=tuple(tenant for tenant in self.tenants if tenant.name in names))

    def scaled(self, factor: float) -> Moment:
        if not 0 < factor <= 1:
            raise ClusterError(f"a scale of {factor:g} is not above 0 and at most 1: give one such as 0.01")
        return self if factor == 1 else replace(self, tenants=tuple(one.scaled(factor) for one in self.tenants))

    def assumed(self) -> list[JobPace]:
        """The pace of every job in the model of the replay, the mean over random moments (`rates.py`)."""
        network = SharedNetwork(self.plant, self.policy.routing, self.seed)
        for tenant in self.tenants:
            network.start(tenant.name, tenant.number, tenant.footprint)
        network.settle()
        return [network.pace(tenant.name) for tenant in self.tenants]
