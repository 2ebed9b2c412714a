"""What became of one job: where it ran when, and how long it waited for what; or that it could never start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropewalk.tenancy.allocation import Allocation, Reason

BEHIND_HEAD = "behind-the-head"
"""A job that was not tried because one before it in the queue could not start."""
RESTART = "restart"
"""The reason of waiting of a job that a failure has stopped, until it is tried again."""


@dataclass(frozen=True)
class Stretch:
    """A time in which a job ran in one place."""

    start_s: float
    end_s: float
    allocation: Allocation

    def covers(self, when_s: float) -> bool:
        """Does it run then? Who ends at a moment has left, who starts then has come."""
        return self.start_s <= when_s < self.end_s


@dataclass(frozen=True)
class JobRecord:
    """One job of a replay."""

    name: str
    gpus: int
    arrival_s: float
    stretches: tuple[Stretch, ...]
    """In order; one unless failures stopped it and it was placed anew."""
    quiet_s: float
    """How long it would have run alone on a network without collisions, on the GPUs it had."""
    waited_s: Mapping[str, float]
    """Seconds of waiting by reason: the values of `Reason`, `BEHIND_HEAD` or `RESTART`."""
    flows: float
    """Flows that it sent, counted per round and iteration."""
    met_flows: float
    """Of these the ones that found another flow on one of their leaf-spine links."""
    deadline_s: float | None = None
    model: str = ""
    """What it trained, as tables name it."""
    busy_s: float = 0.0
    """How long each of its GPUs computed, mean over them."""

    @property
    def slowdown(self) -> float:
        """Running time over the time on a quiet network."""
        return self.jrt_s / self.quiet_s if self.quiet_s else 1.0

    @property
    def stretch(self) -> float:
        """Completion over the time on a quiet network: what waiting and the network cost together."""
        return self.jct_s / self.quiet_s if self.quiet_s else 1.0

    @property
    def scaling_factor(self) -> float:
        """Time of one GPU over n times the time of n, for the arithmetic that was done: 1 where nothing is lost."""
        return self.busy_s / self.jrt_s if self.jrt_s else 1.0

    @property
    def start_s(self) -> float:
        """Of its last stretch."""
        return self.stretches[-1].start_s

    @property
    def finish_s(self) -> float:
        return self.stretches[-1].end_s

    @property
    def allocation(self) -> Allocation:
        """The place where it finished."""
        return self.stretches[-1].allocation

    @property
    def restarts(self) -> int:
        return len(self.stretches) - 1

    @property
    def jct_s(self) -> float:
        """Completion: from arrival to finish."""
        return self.finish_s - self.arrival_s

    @property
    def jrt_s(self) -> float:
        """Running: the sum of its stretches."""
        return sum(stretch.end_s - stretch.start_s for stretch in self.stretches)

    @property
    def jwt_s(self) -> float:
        """Waiting: what of its completion was not running."""
        return max(0.0, self.jct_s - self.jrt_s) if self.restarts else self.start_s - self.arrival_s

    @property
    def main_reason(self) -> str | None:
        """What it waited for longest; None where it did not wait."""
        if not any(self.waited_s.values()):
            return None
        return max(self.waited_s, key=lambda reason: (self.waited_s[reason], reason))

    def place_at(self, when_s: float) -> Allocation | None:
        """What it held at a moment; None while it waited, and before and after."""
        return next((stretch.allocation for stretch in self.stretches if stretch.covers(when_s)), None)

    def next_start_s(self, when_s: float) -> float | None:
        """When it starts, or starts again, if it waits at a moment; None where it does not wait then."""
        if when_s < self.arrival_s or self.place_at(when_s) is not None:
            return None
        return next((stretch.start_s for stretch in self.stretches if stretch.start_s > when_s), None)

    def as_document(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return {
            "name": self.name,
            "gpus": self.gpus,
            "arrival_s": self.arrival_s,
            "start_s": self.start_s,
            "finish_s": self.finish_s,
            "quiet_s": self.quiet_s,
            "jct_s": self.jct_s,
            "jrt_s": self.jrt_s,
            "jwt_s": self.jwt_s,
            "waited_s": dict(self.waited_s),
            "main_reason": self.main_reason,
            "flows": self.flows,
            "met_flows": self.met_flows,
            "deadline_s": self.deadline_s,
            "model": self.model,
            "slowdown": self.slowdown,
            "scaling_factor": self.scaling_factor,
            "restarts": self.restarts,
            "stretches": [
                {
                    "start_s": stretch.start_s,
                    "end_s": stretch.end_s,
                    "stage": stretch.allocation.stage,
                    "leafs": list(stretch.allocation.leafs),
                    "spines": list(stretch.allocation.spines),
                    "gpus": list(stretch.allocation.gpus),
                }
                for stretch in self.stretches
            ],
        }


@dataclass(frozen=True)
class Refusal:
    """A job that cannot start on this plant under this policy even when everything is free."""

    name: str
    gpus: int
    arrival_s: float
    reason: str
    explanation: str


@dataclass(frozen=True)
class Blocked:
    """A try to start the head of the queue that failed."""

    job: str
    at_s: float
    reason: str

    @property
    def for_spines_alone(self) -> bool:
        return self.reason == Reason.NETWORK_FRAGMENTATION.value
