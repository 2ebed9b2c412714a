"""How a cluster is run: the policy by which jobs share it, the order of the queue, who may pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.records import plain, record
from ropewalk.tenancy.backfill import BACKFILLS, Backfill, backfill_named
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import POLICIES, Policy
from ropewalk.tenancy.queue import ORDERS, Order, order_named

DEFAULT_RUN_S = 86_400.0
"""A job that does not say how long it runs is taken for a day long where an order or a backfill must know."""


@dataclass(frozen=True)
class Settings:
    """What an operator chooses; all of it can be changed while jobs run.

    >>> Settings(policy="laas", queue="smallest").rule.isolates
    True
    """

    policy: str = "vclos"
    queue: str = "fifo"
    backfill: str = "none"
    keep_links: bool = False
    """Links of an ended job stay taken until its rules are gone."""

    def __post_init__(self) -> None:
        if not POLICIES.named(self.policy).buildable:
            raise ClusterError(f"policy {self.policy} cannot be run on a real cluster, it is a baseline: use another")
        order_named(self.queue)
        backfill_named(self.backfill)

    @property
    def rule(self) -> Policy:
        """The policy itself."""
        return POLICIES[self.policy]

    def check(self, plant: Plant) -> None:
        """Refuse a policy that does not know such a cluster."""
        reason = self.rule.applies((), plant)
        if reason is not None:
            fitting = [name for name in POLICIES.names_for((), plant) if POLICIES[name].buildable]
            raise ClusterError(f"policy {self.policy} {reason}: use one of {', '.join(fitting)}")
        if self.rule.optical and plant.cores and self.keep_links:
            raise ClusterError(
                f"rules of {self.policy} are not written on three tiers, so nobody could say when links are free: run "
                "it without --driver, or use vclos"
            )

    @property
    def order(self) -> Order:
        return ORDERS[self.queue]

    @property
    def passing(self) -> Backfill | None:
        return BACKFILLS[self.backfill]

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(self)
        return document

    @classmethod
    def from_document(cls, document: object) -> Settings:
        return record(cls, document, "settings", ClusterError)
