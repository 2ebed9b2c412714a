"""In which groups, pieces and order gradients are all-reduced, and what the next step waits for.

An `Order` is a part of the `Strategy` and holds for every group of data ranks alike, whatever else splits the model:
each pipeline stage launches the gradients of its own layers, experts are reduced among the ranks that have them.
`ORDERS` are the usual ones by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isnan

from ropewalk.choices import Choice, Choices
from ropewalk.errors import Findings, StrategyError
from ropewalk.units import show_size

DDP_BUCKET = 25 * 2**20
"""Bytes of gradients that PyTorch's DistributedDataParallel collects before it reduces them, unless told otherwise."""

ARRIVALS = {
    "whole": "all layers of a launch arrive when it completes",
    "streamed": "layers of a launch are all-reduced one by one, each arriving when its own part completes",
    "gathered": "all layers of a launch are reduce-scattered first, then gathered one by one",
    "released": "launches are chunks of one all-reduce that is opened before the first gradient: they cost no launch, "
    "and the layers of a chunk arrive when it completes",
}
PRIORITIES = {
    "fifo": "concurrent launches share links equally",
    "queued": "first come, first served on every link",
    "forward": "what the next forward pass needs first preempts on every link",
}

Piece = tuple[str, float]
"""A layer, and which part of its gradients, from 0 to 1."""
Launches = tuple[tuple[Piece, ...], ...]
"""What is launched together, in the order in which it is handed over."""


@dataclass(frozen=True)
class Order:
    """How gradients are launched.

    >>> Order().is_plain, Order(priority="forward", across_steps=True).said()
    (True, 'buckets of 26.21 MB, forward first, across steps')
    """

    fusion: float | Launches = float(DDP_BUCKET)
    """Bytes that are collected, layer by layer as gradients are ready, before they are reduced together (0: every layer
    by itself), or the launches themselves, in order."""
    partition_bytes: float = inf
    """Launches are cut into pieces of at most so many bytes."""
    priority: str = "fifo"
    """Who goes first on a link: one of `PRIORITIES`."""
    credit_bytes: float = 0.0
    """Bytes that may be handed over and not yet reduced; 0: one launch at a time, as on one NCCL communicator."""
    arrival: str = "whole"
    """When the layers of a launch are there: one of `ARRIVALS`."""
    overlap: bool = True
    """Gradients are reduced while the backward pass goes on; otherwise after it."""
    across_steps: bool = False
    """A layer of the next step waits for its own gradients alone (ByteScheduler); otherwise a step waits for all."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "order of gradients")
        for name, value, least in (
            ("bucket", self.fusion, 0.0), ("partition", self.partition_bytes, 0.0), ("credit", self.credit_bytes, 0.0)
        ):  # fmt: skip
            if not isinstance(value, tuple) and (isnan(value) or value < least):
                findings.add(f"{name} of {value:g} bytes: give 0 or more")
        if self.partition_bytes == 0:
            findings.add("pieces of 0 bytes carry nothing: give a partition above 0, or none")
        for what, chosen, known in (("priority", self.priority, PRIORITIES), ("arrival", self.arrival, ARRIVALS)):
            if chosen not in known:
                findings.add(f"there is no {what} {chosen!r}: use one of {', '.join(known)}")
        if self.arrival == "gathered" and self.partition_bytes != inf:
            findings.add(
                "gradients that are gathered layer by layer cannot be cut into pieces: leave the partition out"
            )
        if isinstance(self.fusion, tuple):
            _check_launches(self.fusion, findings)
        findings.raise_if_any()

    @property
    def is_plain(self) -> bool:
        """Is it what PyTorch's DistributedDataParallel does: buckets in order, one at a time, all before the update?"""
        return (
            not isinstance(self.fusion, tuple)
            and self.partition_bytes == inf
            and self.credit_bytes == 0
            and self.priority == "fifo"
            and self.arrival == "whole"
            and not self.across_steps
        )

    @property
    def bucket_bytes(self) -> float:
        """Bytes that are collected before they are reduced, 0 where launches are listed."""
        return 0.0 if isinstance(self.fusion, tuple) else self.fusion

    def said(self) -> str:
        """The order in a few words."""
        if isinstance(self.fusion, tuple):
            words = [f"{len(self.fusion)} launches"]
        else:
            words = [f"buckets of {show_size(self.fusion)}" if self.fusion else "layer by layer"]
        if self.partition_bytes != inf:
            words.append(f"pieces of {show_size(self.partition_bytes)}")
        if self.priority != "fifo":
            words.append({"forward": "forward first", "queued": "queued"}[self.priority])
        if self.credit_bytes:
            words.append(f"credit {'without limit' if self.credit_bytes == inf else show_size(self.credit_bytes)}")
        if self.arrival != "whole":
            words.append("one streamed all-reduce" if self.arrival == "released" else self.arrival)
        if not self.overlap:
            words.append("after the backward pass")
        if self.across_steps:
            words.append("across steps")
        return ", ".join(words)


def launches_of(groups: Iterable[Iterable[str]]) -> Launches:
    """Whole layers by name, launched group by group."""
    return tuple(tuple((name, 1.0) for name in group) for group in groups)


ORDERS: Choices[Choice[Order]] = Choices(
    "order",
    (
        Choice("buckets", Order(), "PyTorch DDP: buckets of 25 MiB as gradients are ready, all before the next step"),
        Choice("fifo", Order(fusion=0.0), "every layer separately, as its gradients are ready"),
        Choice(
            "priority",
            Order(fusion=0.0, priority="forward", credit_bytes=inf, across_steps=True),
            "what the next forward pass needs first preempts on every link; layers wait for their own gradients only",
        ),
        Choice(
            "streamed",
            Order(arrival="streamed", across_steps=True),
            "buckets whose layers arrive one by one; layers wait for their own gradients only",
        ),
        Choice(
            "one-stream",
            Order(fusion=0.0, priority="forward", credit_bytes=inf, arrival="released", across_steps=True),
            "one streamed all-reduce: layers enter as their gradients become ready, the most urgent preempt, and each "
            "is released when its own part completes",
        ),
    ),
    error=StrategyError,
)
"""Orders by name, for commands."""


def _check_launches(launches: Launches, findings: Findings) -> None:
    total: dict[str, float] = {}
    for number, launch in enumerate(launches):
        if not launch:
            findings.add(f"launch {number} is empty: leave it out")
        for name, part in launch:
            if not 0 <= part <= 1:
                findings.add(f"launch {number} has {part:g} of {name}: give a part from 0 to 1")
            total[name] = total.get(name, 0.0) + part
    for name, part in total.items():
        if abs(part - 1) > 1e-9:
            findings.add(f"{name} is launched {part:g} times: launch all of its gradients exactly once")
