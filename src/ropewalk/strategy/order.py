"""In which groups, pieces and order gradients are all-reduced, and what the next step waits for.

An `Order` says it for every group of data ranks alike, whatever else splits the model: each pipeline stage launches the
gradients of its own layers, experts are reduced among the ranks that have them. `ORDERS` are the usual ones by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from ropewalk.choices import Choice, Choices
from ropewalk.errors import Findings, StrategyError
from ropewalk.units import show_size

if TYPE_CHECKING:
    from ropewalk.strategy.strategy import Strategy

DDP_BUCKET = 25 * 2**20
"""Bytes of gradients that PyTorch's DistributedDataParallel collects before it reduces them, unless told otherwise."""

ARRIVALS = {
    "whole": "all layers of a launch are there when it is over",
    "streamed": "layers of a launch are all-reduced one after the other, each there when its own part is over",
    "gathered": "all layers of a launch are reduced and scattered first, then gathered one after the other",
}
PRIORITIES = {
    "fifo": "launches that are under way together share links as equals",
    "queued": "what was handed over first has all of a link, and the others follow",
    "forward": "what the next forward pass needs first overtakes on every link, byte by byte",
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
            words.append(self.arrival)
        if not self.overlap:
            words.append("after the backward pass")
        if self.across_steps:
            words.append("across steps")
        return ", ".join(words)

    def as_json(self) -> dict[str, Any]:
        """Plain types; a size without limit is None.

        >>> from_json(Order(fusion=launches_of([["b", "a"]])).as_json()).fusion
        ((('b', 1.0), ('a', 1.0)),)
        """
        found: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(self.fusion, tuple):
            found["fusion"] = [[name if part == 1 else [name, part] for name, part in one] for one in self.fusion]
        return {name: None if value == inf else value for name, value in found.items()}


def launches_of(groups: Iterable[Iterable[str]]) -> Launches:
    """Whole layers by name, launched group by group."""
    return tuple(tuple((name, 1.0) for name in group) for group in groups)


def from_json(document: Mapping[str, Any]) -> Order:
    """An order as `Order.as_json` writes it."""
    known = {field.name for field in fields(Order)}
    strange = sorted(set(document) - known)
    if strange:
        raise StrategyError(f"order of gradients: there is no {strange[0]!r}: use {', '.join(sorted(known))}")
    values: dict[str, Any] = {name: inf if value is None else value for name, value in document.items()}
    if isinstance(values.get("fusion"), list):
        values["fusion"] = tuple(
            tuple((entry, 1.0) if isinstance(entry, str) else (str(entry[0]), float(entry[1])) for entry in one)
            for one in values["fusion"]
        )
    return Order(**values)


def check_order(order: Order, strategy: Strategy) -> None:
    """Refuse what cannot be done with the gradients of this strategy."""
    findings = Findings(StrategyError, "order of gradients")
    if not order.is_plain and strategy.zero >= 2:
        findings.add(
            f"ZeRO-{strategy.zero} reduces the gradients of every layer in every micro-batch, since they have no place "
            "to wait: use ZeRO 0 or 1, or the order buckets without a partition and a credit"
        )
    elif strategy.zero and (order.across_steps or order.arrival == "gathered"):
        findings.add(
            f"ZeRO-{strategy.zero} gathers weights after the update, so no layer can go ahead with its own gradients: "
            "use ZeRO 0, or an order that waits at the end of the step"
        )
    findings.raise_if_any()


ORDERS: Choices[Choice[Order]] = Choices(
    "order",
    (
        Choice("buckets", Order(), "PyTorch DDP: buckets of 25 MiB as gradients are ready, all before the next step"),
        Choice("fifo", Order(fusion=0.0), "every layer by itself as its gradients are ready"),
        Choice(
            "priority",
            Order(fusion=0.0, priority="forward", credit_bytes=inf, across_steps=True),
            "what the next forward pass needs first overtakes on every link; layers wait for their own gradients alone",
        ),
        Choice(
            "streamed",
            Order(arrival="streamed", across_steps=True),
            "buckets whose layers arrive one after the other; layers wait for their own gradients alone",
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
